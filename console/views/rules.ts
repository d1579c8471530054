import { useState } from 'preact/hooks';
import { ask, mutate } from '../api.ts';
import { RuleVersionsDocument, type RuleVersionsQuery, SetWalletRuleStatusDocument, WalletPartsDocument, WalletRuleDocument } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Entry, Select, utcOf } from '../kit/form.ts';
import { type Column, List, nodesOf, usePages } from '../kit/list.ts';
import { ConfirmButton, Dialog, toast } from '../kit/overlay.ts';
import { Answer, type Crumb, Empty, Found, may, Page, useAsk } from '../kit/page.ts';
import { Named, Picker, UUID } from '../kit/picker.ts';
import { actors, wallets } from '../kit/sources.ts';
import { Badge, Id, Time } from '../kit/text.ts';
import { go, linkTo, place } from '../router.ts';
import { RULE_TYPES, sideBySide } from './rule-draft.ts';
import { type EditorInput, RuleEditor } from './rule-editor.ts';
import { Naming } from './rule-preview.ts';
import { RuleStatus, Rules, WriteNeeded } from './wallets.ts';

export function show(walletId?: string, _rules?: string, id?: string) {
  if (walletId === undefined) return html`<${RulesPage} />`;
  return id === undefined ? undefined : html`<${RulePage} key=${id} walletId=${walletId} id=${id} />`;
}

function RulesPage() {
  const { query: given } = place.value;
  const [type, changedSince] = [given.get('type') ?? '', given.get('changedSince') ?? ''];
  /** What is typed to choose a wallet for a new rule. */
  const [wallet, setWallet] = useState<string>();
  const filter = (query: object) => go(linkTo(['rules'], { type, changedSince, ...query }), { replaces: true });
  const choose = (text: string) => (UUID.test(text) ? go(linkTo(['wallets', text, 'rules', 'new'])) : setWallet(text));
  const yesterday = () => filter({ changedSince: utcOf(new Date().setHours(-24, 0, 0, 0)) });
  const add = may('wallet-rules:write') && html`<button type="button" class="primary" onClick=${() => setWallet('')}>New rule</button>`;
  const nothing =
    type || changedSince
      ? html`<${Empty} icon="search" next=${html`<button type="button" onClick=${() => filter({ type: '', changedSince: '' })}>Show all rules</button>`}>No rule matches.<//>`
      : html`<${Empty} icon="rules" next=${add}>No rules yet. Rules automate or limit transfers from a wallet.<//>`;
  return html`<${Page} title="Rules" actions=${add}>
    <div class="filters">
      <${Select} label="Type" value=${type} options=${[['', 'All'], ...Object.entries(RULE_TYPES)]} onChange=${(to: string) => filter({ type: to })} />
      <${Entry} label="Changed since" isTime value=${changedSince} onEnter=${(at: string) => filter({ changedSince: at })} />
      <button type="button" onClick=${yesterday}>Since yesterday</button>
    </div>
    <${Rules} type=${type || null} changedSince=${changedSince || null} empty=${nothing} />
    ${
      wallet !== undefined &&
      html`<${Dialog} title="New rule" onClose=${() => setWallet(undefined)}>
      <${Picker} label="Paying wallet" hint="Search by the name of its account." source=${wallets} value=${wallet} onChange=${choose} />
      <p class="actions end"><button type="button" onClick=${() => setWallet(undefined)}>Cancel</button></p><//>`
    }
  <//>`;
}

/** A rule of a wallet, or a new one, which has the id `new`. */
function RulePage({ walletId, id }: { walletId: string; id: string }) {
  const asked = useAsk(WalletPartsDocument, { id: walletId, withAccount: may('accounts:read') });
  const wallet = asked.data?.wallet;
  const name = wallet?.account?.name ?? 'Wallet';
  const trail = [
    { text: 'Rules', link: linkTo(['rules']) },
    { text: wallet ? `${name} › ${wallet.chain}` : name, link: linkTo(['wallets', walletId]) },
  ];
  const networks = wallet ? nodesOf(wallet.networks) : [];
  if (id !== 'new') return html`<${StoredRule} ...${{ walletId, id, networks, trail }} />`;
  const created = (rule: Rule) => go(linkTo(['wallets', walletId, 'rules', rule.id]));
  return html`<${Page} title="New rule" trail=${trail}>
    <${WriteNeeded} />
    <${Found} asked=${asked} noun="wallet">${() => html`<${RuleEditor} ...${{ walletId, networks }} onSaved=${created} />`}<//>
  <//>`;
}

function StoredRule({ walletId, id, networks, trail }: Pick<EditorInput, 'walletId' | 'networks'> & { id: string; trail: Crumb[] }) {
  const asked = useAsk(WalletRuleDocument, { id });
  const [changed, setChanged] = useState<Rule>();
  const known = changed ?? asked.data?.walletRule;
  // An address names both: a rule is neither shown nor changed under another wallet.
  const rule = known?.walletId === walletId.toLowerCase() ? known : undefined;
  const isActive = rule?.status === 'ACTIVE';
  const verb = isActive ? 'Disable' : 'Activate';
  const setStatus = async () => {
    const { walletRule: stored } = await ask(WalletRuleDocument, { id });
    if (stored && stored.version !== rule?.version) {
      setChanged(stored);
      throw new Error('Someone else changed the rule. Review it, then decide again.');
    }
    setChanged(await mutate(SetWalletRuleStatusDocument, { id, status: isActive ? 'DISABLED' : 'ACTIVE', ifVersion: rule?.version ?? null }));
    toast(isActive ? 'Rule disabled.' : 'Rule activated.');
  };
  return html`<${Page} title=${rule?.name || 'Rule'} trail=${trail}
    actions=${rule && html`<${RuleStatus} status=${rule.status} />${may('wallet-rules:write') && html`<${ConfirmButton} title=${`${verb} this rule?`} verb=${`${verb} the rule`} isHarmless=${!isActive} act=${setStatus}><p>${CONSEQUENCE[verb]}</p><//>`}`}>
    <${Answer} asked=${asked}>${() =>
      rule
        ? html`<${WriteNeeded} />
      <details open=${place.value.query.has('history')}><summary>Version ${rule.version}, changed <${Time} at=${rule.updatedAt} />: see the history</summary>
        <p class="muted">Id: <${Id} id=${rule.id} /></p><${History} key=${rule.version} ruleId=${id} /></details>
      <${RuleEditor} ...${{ walletId, rule, networks }} onSaved=${setChanged} />`
        : html`<${Empty}>The wallet has no rule with this id: it belongs to another wallet, was deleted with its wallet, or never existed.<//>`}<//>
  <//>`;
}

const CONSEQUENCE = {
  Disable: 'The rule stops applying until you activate it again. Automatic transfers stop, and its limit no longer permits transfers.',
  Activate: 'The rule fires whenever its conditions are true. You cannot undo transfers that it makes.',
};

type Rule = NonNullable<EditorInput['rule']>;
type Version = RuleVersionsQuery['walletRuleVersions']['edges'][number]['node'];

function History({ ruleId }: { ruleId: string }) {
  const asked = usePages(RuleVersionsDocument, { ruleId });
  const after = asked.data?.walletRuleVersions.pageInfo.endCursor ?? null;
  const older = useAsk(RuleVersionsDocument, { ruleId, first: after === null ? 0 : 1, after });
  return html`<${Answer} asked=${asked}>${({ walletRuleVersions: versions }: RuleVersionsQuery) => {
    const known = [...nodesOf(versions), ...(older.data ? nodesOf(older.data.walletRuleVersions) : [])];
    const before = ({ version }: Version) => known.find((other) => other.version === version - 1);
    const changes = { title: 'Changes', cell: (row: Version) => html`<${Changes} version=${row} before=${before(row)} />` };
    return html`<${List} label="Version history" noun="versions" of=${versions} pages=${asked.pages}
        columns=${[...COLUMNS, changes]} keyOf=${({ version }: Version) => version} />`;
  }}<//>`;
}

const COLUMNS: readonly Column<Version>[] = [
  { title: 'Version', isNumber: true, cell: ({ version }) => version },
  { title: 'When', cell: ({ at }) => html`<${Time} at=${at} isAbsolute />` },
  { title: 'By', cell: ({ subject }) => html`<${Named} source=${actors} id=${subject} />` },
  { title: 'Client', cell: ({ clientId }) => html`<${Named} source=${actors} id=${clientId ?? ''} />` },
  { title: 'Status', cell: ({ status, deleted }) => (deleted ? html`<${Badge} tone="bad">deleted<//>` : html`<${RuleStatus} status=${status} />`) },
  { title: 'Request', cell: ({ correlationId: id }) => html`<${Id} id=${id} link=${linkTo(['audit'], { correlationId: id ?? '' })} />` },
];

const whole = ({ rule, status }: Version) => ({ ...(rule as object), status: status.toLowerCase() });

function Changes({ version, before }: { version: Version; before: Version | undefined }) {
  if (version.deleted) return 'The rule was deleted with its wallet.';
  if (!before) return version.version === 1 ? 'The rule was created.' : 'not known';
  const differences = sideBySide(whole(before), whole(version)).filter(({ before, after }) => before !== after);
  if (differences.length === 0) return 'Nothing: it was saved without changes.';
  return html`<ul class="changes">${differences.map(
    ({ name, before, after }) => html`<li><b>${name}</b>: ${before !== undefined && html`<del><${Naming} text=${before} /></del>`}
      ${before !== undefined && after !== undefined && ' → '}${after !== undefined && html`<ins><${Naming} text=${after} /></ins>`}</li>`,
  )}</ul>`;
}
