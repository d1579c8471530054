import { contentOf, type WalletRuleVersionRow } from '../../../domain/wallet-rules/wallet-rules.service.ts';
import { hasDecimalForm } from '../../../lib/decimal.ts';
import { ExactNumber } from '../../../lib/json.ts';
import type { RuleLogic } from '../../../tables/wallet-rule-content.ts';
import { versionsOfRule } from '../../shared/lists.ts';
import { type Builder, connectionOf, implement, needs } from '../kit/builder.ts';
import { connectionResolver, ownedConnectionResolver } from '../kit/pages.ts';
import type { TypeRefs } from '../kit/type-refs.ts';

/** Returns a stored decimal as a JSON number with every digit; a text that is none as it is, so that the rule is shown. */
function exactOf(text: string): unknown {
  return hasDecimalForm(text) ? new ExactNumber(text) : text;
}

/** Returns a condition tree in its REST form, whose values are JSON numbers that are written with every digit. */
export function ruleLogicView(logic: RuleLogic): unknown {
  if ('field' in logic) return { ...logic, value: exactOf(logic.value) };
  if ('not' in logic) return { not: ruleLogicView(logic.not) };
  return 'and' in logic ? { and: logic.and.map(ruleLogicView) } : { or: logic.or.map(ruleLogicView) };
}

/** Returns the content of a version as the body of REST that makes it, with every digit of its numbers. */
function restBodyOf(row: WalletRuleVersionRow): object {
  const { auto_transfer_rule: transfer, permissionless_transfer_limit_rule: limit, ...content } = contentOf(row);
  return {
    ...content,
    auto_transfer_rule: transfer && {
      ...transfer,
      rule_logic: ruleLogicView(transfer.rule_logic),
      amount: exactOf(transfer.amount),
    },
    permissionless_transfer_limit_rule: limit && { ...limit, max_amount: exactOf(limit.max_amount) },
  };
}

function versionType(builder: Builder, { walletRuleStatus }: TypeRefs) {
  const type = implement(
    builder.objectRef<WalletRuleVersionRow>('WalletRuleVersion'),
    'A version of a rule and its author.',
    {
      version: ['Int', 'The version number; versions are numbered from 1 without gaps.'],
      status: [walletRuleStatus, 'The rule status in this version.'],
      deleted: ['Boolean', 'Whether the rule was deleted with its wallet; `rule` is its last state.'],
      client_id: ['ID?', 'The client of that token; null if it names none or is unknown.'],
      correlation_id: ['String?', 'The correlation id of the request, as in its audit record; null if unknown.'],
      at: ['DateTime', 'When it was made.'],
    },
  );
  builder.objectFields(type, (t) => ({
    rule: t.field({
      type: 'JSON',
      description:
        'The rule in full, as a REST body with only the members that were sent and operators in the short form. To restore it, send it with PUT.',
      resolve: restBodyOf,
    }),
    subject: t.string({
      description:
        "The `sub` of the author's token: the id of a supervisor or client, or any text in a legacy token. Empty if unknown.",
      resolve: (row) => row.subject ?? '',
    }),
  }));
  return type;
}

/** Adds the type of versions, the field of rules that lists them, and the query that finds them for a deleted rule too. */
export function addWalletRuleVersions(builder: Builder, refs: TypeRefs): void {
  const connection = connectionOf(
    builder,
    versionType(builder, refs),
    'A page of versions.',
    'A version and its cursor.',
  );
  builder.objectField(refs.walletRule, 'versions', (t) =>
    t.field({
      type: connection,
      ...needs('wallet-rules:read', 'Its versions, newest first.'),
      args: t.arg.connectionArgs(),
      resolve: ownedConnectionResolver('versionsOfRule', ({ walletRulePages }) => walletRulePages.versions),
    }),
  );
  builder.queryField('walletRuleVersions', (t) =>
    t.field({
      type: connection,
      ...needs(
        'wallet-rules:read',
        "A rule's versions, newest first, also if the rule was deleted with its wallet. NOT_FOUND if the rule is unknown or belongs to another tenant.",
      ),
      args: { ruleId: t.arg.id({ required: true, description: "The rule's UUID." }), ...t.arg.connectionArgs() },
      resolve: connectionResolver('walletRuleVersions', versionsOfRule, ({ ruleId }) => ruleId.toLowerCase()),
    }),
  );
}
