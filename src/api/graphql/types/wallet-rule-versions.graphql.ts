import { contentOf, type WalletRuleVersionRow } from '../../../domain/wallet-rules/wallet-rules.service.ts';
import { hasDecimalForm } from '../../../lib/decimal.ts';
import { ExactNumber } from '../../../lib/json.ts';
import type { RuleLogic } from '../../../tables/wallet-rule-content.ts';
import { versionsOfRule } from '../../shared/lists.ts';
import { type Builder, needs } from '../kit/builder.ts';
import { connectionResolver, ownedConnectionResolver } from '../kit/pages.ts';
import type { TypeRefs } from '../kit/type-refs.ts';
import type { WalletRuleStatusEnum } from './wallet-rule-mutations.graphql.ts';

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

function versionType(builder: Builder, status: WalletRuleStatusEnum) {
  return builder.objectRef<WalletRuleVersionRow>('WalletRuleVersion').implement({
    description: 'A version of a rule and its author.',
    fields: (t) => ({
      version: t.exposeInt('version', { description: 'Its number; the next one is one higher.' }),
      rule: t.field({
        type: 'JSON',
        description:
          'The rule in full, as a REST body with only the members that were sent and operators in the short form. To restore it, send it by PUT.',
        resolve: restBodyOf,
      }),
      status: t.expose('status', { type: status, description: 'Whether it could fire.' }),
      deleted: t.exposeBoolean('deleted', {
        description: 'Whether the rule was deleted with its wallet; `rule` is its last state.',
      }),
      subject: t.string({
        description:
          'Whose token it was: the id of a supervisor or client; of legacy tokens any text. Empty where that is unknown.',
        resolve: (row) => row.subject ?? '',
      }),
      clientId: t.exposeID('client_id', {
        nullable: true,
        description: 'The client of that token; null where it names none, or is unknown.',
      }),
      correlationId: t.exposeString('correlation_id', {
        nullable: true,
        description: 'The correlation id of the request, as in its audit record; null where that is unknown.',
      }),
      at: t.expose('at', { type: 'DateTime', description: 'When it was made.' }),
    }),
  });
}

/** Adds the type of versions, the field of rules that lists them, and the query for those of a rule that may be gone. */
export function addWalletRuleVersions(builder: Builder, refs: TypeRefs, status: WalletRuleStatusEnum): void {
  const connection = builder.connectionObject(
    { type: versionType(builder, status), name: 'WalletRuleVersionConnection', description: 'A page of versions.' },
    { name: 'WalletRuleVersionEdge', description: 'A version and its cursor.' },
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
        "A rule's versions, newest first; of one that went with its wallet too. NOT_FOUND for a rule that is unknown or of another node.",
      ),
      args: { ruleId: t.arg.id({ required: true, description: "The rule's UUID." }), ...t.arg.connectionArgs() },
      resolve: connectionResolver('walletRuleVersions', versionsOfRule, ({ ruleId }) => ruleId.toLowerCase()),
    }),
  );
}
