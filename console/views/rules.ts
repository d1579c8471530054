import { useState } from 'preact/hooks';
import { ask, mutate } from '../api.ts';
import { RuleVersionsDocument, type RuleVersionsQuery, SetWalletRuleStatusDocument, WalletPartsDocument, WalletRuleDocument } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Author } from '../kit/activity.ts';
import { Entry, Select, utcOf } from '../kit/form.ts';
import { type Column, List, nodesOf, usePages } from '../kit/list.ts';
import { ConfirmButton, Dialog, toast } from '../kit/overlay.ts';
import { Answer, type Crumb, Empty, Found, may, Page, useAsk } from '../kit/page.ts';
import { Picker, UUID } from '../kit/picker.ts';
import { actors, wallets } from '../kit/sources.ts';
import { Id, Time } from '../kit/text.ts';
import { go, leave, linkTo, place, setQuery } from '../router.ts';
import { type Draft, differing, draftOf, draftOfVersion, RULE_TYPES } from './rule-draft.ts';
import { Differences, type EditorInput, type Restored, RuleEditor } from './rule-editor.ts';
import { Both, Name, Sentence } from './rule-preview.ts';
import { RuleStatus, Rules, WriteNeeded } from './wallets.ts';

export function show(walletId?: string, _rules?: string, id?: string) {
  if (walletId === undefined) return html`<${RulesPage} />`;
  return id === undefined ? undefined : html`<${RulePage} key=${`${walletId}/${id}`} walletId=${walletId} id=${id} />`;
}

function RulesPage() {
  const { query: given } = place.value;
  const [type, changedSince] = [given.get('type') ?? '', given.get('changedSince') ?? ''];
  /** What is typed to choose a wallet for a new rule. */
  const [wallet, setWallet] = useState<string>();
  const choose = (text: string) => (UUID.test(text) ? go(linkTo(['wallets', text, 'rules', 'new'])) : setWallet(text));
  const yesterday = () => setQuery({ changedSince: utcOf(new Date().setHours(-24, 0, 0, 0)) });
  const add = may('wallet-rules:write') && html`<button type="button" class="primary" onClick=${() => setWallet('')}>New rule</button>`;
  const nothing =
    type || changedSince
      ? html`<${Empty} icon="search" next=${html`<button type="button" onClick=${() => setQuery({ type: '', changedSince: '' })}>Show all rules</button>`}>No rule matches.<//>`
      : html`<${Empty} icon="rules" next=${add}>No rules yet. Rules automate or limit transfers from a wallet.<//>`;
  return html`<${Page} title="Rules" actions=${add}>
    <div class="filters">
      <${Select} label="Type" value=${type} options=${[['', 'All'], ...Object.entries(RULE_TYPES)]} onChange=${(to: string) => setQuery({ type: to })} />
      <${Entry} label="Changed since" isTime value=${changedSince} onEnter=${(at: string) => setQuery({ changedSince: at })} />
      <button type="button" onClick=${yesterday}>Since yesterday</button>
    </div>
    <${Rules} type=${type || null} changedSince=${changedSince || null} empty=${nothing} />
    ${
      wallet !== undefined &&
      html`<${Dialog} title="New rule" onClose=${() => setWallet(undefined)}>
      <${Picker} label="Paying wallet" autofocus hint="From which it transfers; the wallet that receives is chosen next. Search by the name of its account." source=${wallets} value=${wallet} onChange=${choose} />
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
  const chain = wallet?.chain ?? '';
  if (id !== 'new') return html`<${StoredRule} ...${{ walletId, id, chain, networks, trail }} />`;
  const created = (rule: Rule) => go(linkTo(['wallets', walletId, 'rules', rule.id]));
  return html`<${Page} title="New rule" trail=${trail}>
    <${WriteNeeded} />
    <${Found} asked=${asked} noun="wallet">${() => html`<${RuleEditor} ...${{ walletId, chain, networks }} onSaved=${created} />`}<//>
  <//>`;
}

function StoredRule({ walletId, id, chain, networks, trail }: Pick<EditorInput, 'walletId' | 'chain' | 'networks'> & { id: string; trail: Crumb[] }) {
  const asked = useAsk(WalletRuleDocument, { id });
  const [changed, setChanged] = useState<Rule>();
  const [restored, setRestored] = useState<Restored>();
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
      <${Activity} ...${{ rule }} onRestore=${(version: Restored) => leave(() => setRestored(version))} />
      <${RuleEditor} ...${{ walletId, rule, chain, networks, restored }} onSaved=${(saved: Rule) => [setChanged(saved), setRestored(undefined)]} />`
        : html`<${Empty}>The wallet has no rule with this id: it belongs to another wallet, was deleted with its wallet, or never existed.<//>`}<//>
  <//>`;
}

const CONSEQUENCE = {
  Disable: 'The rule stops applying until you activate it again. Automatic transfers stop, and its limit no longer permits transfers.',
  Activate: 'The rule fires whenever its conditions are true. You cannot undo transfers that it makes.',
};

type Rule = NonNullable<EditorInput['rule']>;
type Version = RuleVersionsQuery['walletRuleVersions']['edges'][number]['node'];

/** What happened to a rule, newest first: who changed what, when, why, in which request; and a way back. */
function Activity({ rule, onRestore }: { rule: Rule; onRestore(version: Restored): void }) {
  const { id: ruleId, walletId } = rule;
  const asked = usePages(RuleVersionsDocument, { ruleId }, rule.version);
  const after = asked.data?.walletRuleVersions.pageInfo.endCursor ?? null;
  const older = useAsk(RuleVersionsDocument, { ruleId, first: after === null ? 0 : 1, after });
  const now = draftOf(rule);
  const shown = asked.data ? nodesOf(asked.data.walletRuleVersions) : [];
  const known = [...shown, ...(older.data ? nodesOf(older.data.walletRuleVersions) : [])];
  const beforeOf = ({ version }: Version) => known.find((other) => other.version === version - 1);
  const author = known.find(({ version }) => version === rule.version)?.subject;
  const requests = known.flatMap(({ correlationId }) => correlationId ?? []).slice(0, 100);
  const restore = (row: Version) => {
    const draft = draftOfVersion(row);
    if (row.deleted || !may('wallet-rules:write') || differing(draft, now).length === 0) return null;
    return html`<button type="button" onClick=${() => onRestore({ version: row.version, draft })}>Restore version ${row.version}</button>`;
  };
  const columns: readonly Column<Version>[] = [
    { title: 'Version', isNumber: true, cell: ({ version }) => version },
    { title: 'What', cell: (row) => html`<${Change} ...${{ row, before: beforeOf(row), walletId }} />` },
    { title: 'Who and when', cell: (row) => html`<${Author} ...${row} />` },
    { title: 'Restore', cell: restore },
  ];
  return html`<details open=${place.value.query.has('history')}><summary>Activity: version ${rule.version}, changed <${Time} at=${rule.updatedAt} />${
    author && html` by <${Name} source=${actors} id=${author} />`
  }</summary>
    <p class="muted">Id: <${Id} id=${ruleId} /></p>
    <${Answer} asked=${asked}>${({ walletRuleVersions: versions }: RuleVersionsQuery) =>
      html`<${List} label="Activity" noun="versions" of=${versions} pages=${asked.pages} columns=${columns} keyOf=${({ version }: Version) => version} />`}<//>
    ${may('audit:read') && requests.length > 0 && html`<p class="actions"><a href=${linkTo(['audit'], { correlationIds: requests.join(','), exports: 'shown' })}>Export the requests of these versions</a></p>`}</details>`;
}

/** The members that no sentence has. */
const isBeside = (path: string) => ['name', 'networkId', 'priority'].includes(path);

/** What a version changed: both sentences, the members that no sentence has, the status, and why. */
function Change({ row, before, walletId }: { row: Version; before: Version | undefined; walletId: string }) {
  const draft = draftOfVersion(row);
  const why = row.reason && html`<p class="muted">“${row.reason}”</p>`;
  if (row.deleted) return 'The rule was deleted with its wallet.';
  if (!before) return html`<p>${row.version === 1 ? 'Created.' : 'Saved.'} <${Sentence} ...${{ draft, walletId }} /></p>${why}`;
  const old: Draft = draftOfVersion(before);
  const paths = differing(old, draft).map(({ path }) => path);
  const isSwitched = row.status !== before.status;
  if (paths.length === 0 && !isSwitched) return html`<p>Saved without changes.</p>${why}`;
  const sides = [[`Version ${before.version}`, old] as const, [`Version ${row.version}`, draft] as const];
  return html`${isSwitched && html`<p>${row.status === 'ACTIVE' ? 'Activated.' : 'Disabled.'}</p>`}
    ${!paths.every(isBeside) && html`<${Both} ...${{ walletId, sides }} />`}
    <${Differences} before=${old} after=${draft} isShown=${isBeside} />${why}`;
}
