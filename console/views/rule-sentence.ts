import { html } from '../html.ts';
import { type Source, UUID, useName } from '../kit/picker.ts';
import { currencies, users, wallets } from '../kit/sources.ts';
import { counted, shortened } from '../kit/text.ts';
import { type Draft, fieldName, groupOf, type Logic, ownPart } from './rule-draft.ts';

const COMPARED: Readonly<Record<string, string>> = {
  lt: 'falls below',
  lte: 'is at most',
  gt: 'rises above',
  gte: 'is at least',
  eq: 'is exactly',
  neq: 'is not',
};

/** The name of what an id names, as far as it is known; a gap where nothing is chosen. */
function Name({ source, id = '' }: { source: Source; id: string | undefined }) {
  return useName(source, id) ?? (UUID.test(id) ? shortened(id) : '…');
}

/** An amount with the symbol of its currency. */
export function Amount({ of, currencyId = '' }: { of: string | undefined; currencyId: string | undefined }) {
  const [symbol] = useName(currencies, currencyId)?.split(' · ') ?? [];
  return html`<b>${of || '…'}${symbol && ` ${symbol}`}</b>`;
}

/** Conditions in words. A group inside another one stands in parentheses. */
function Conditions({ logic, isInner = false }: { logic: Logic; isInner?: boolean }) {
  if ('field' in logic) {
    return html`the ${fieldName(logic.field) || '…'} ${COMPARED[logic.op]} <${Amount} of=${logic.value} currencyId=${logic.network_currency_id} />`;
  }
  const { kind, children } = groupOf(logic);
  if (kind === 'not') return html`it is not true that ${children.map((child) => html`<${Conditions} logic=${child} isInner />`)}`;
  const joined = children.map((child, index) => html`${index > 0 && ` ${kind} `}<${Conditions} logic=${child} isInner />`);
  return isInner && children.length > 1 ? html`(${joined})` : joined;
}

function Approvals({ draft: { fields, parts } }: { draft: Draft }) {
  const [least, most] = [fields['signAndApproveRule.minPriority'], fields['signAndApproveRule.maxPriority']];
  const count = Number(fields['signAndApproveRule.minUserCount']) || 1;
  const userId = fields['signAndApproveRule.mandatoryUserId'];
  if (!parts.includes('signAndApproveRule')) return null;
  return html`; ${counted(count, 'approval')} needed${(least || most) && `, by users with priority ${least || 1} to ${most || 100}`}${
    userId && html`, one by <b><${Name} source=${users} id=${userId} /></b>`
  }`;
}

/** What a rule does, in a sentence. */
export function Sentence({ draft }: { draft: Draft }) {
  const { fields, logic } = draft;
  const at = (path: string) => fields[`${ownPart(draft)}.${path}`];
  const currencyId = fields.networkCurrencyId;
  const approvals = html`<${Approvals} draft=${draft} />`;
  if (ownPart(draft) === 'permissionlessTransferLimitRule') {
    return html`Up to <${Amount} of=${at('maxAmount')} currencyId=${currencyId} /> may be transferred without approval
      within ${counted(Number(at('timePeriodValue')) || 1, at('timePeriod') ?? '')}${approvals}.`;
  }
  return html`When <${Conditions} logic=${logic} />, transfer <${Amount} of=${at('amount')} currencyId=${currencyId} />${' '}
    to <b><${Name} source=${wallets} id=${at('targetWalletId')} /></b>${at('type') === 'auto_with_approve' && ' once it is approved'}${approvals}.`;
}
