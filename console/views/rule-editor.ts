import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, failureOf, mutate } from '../api.ts';
import { CreateWalletRuleDocument, ReplaceWalletRuleDocument, type RulePartsFragment as Rule, WalletRuleDocument } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Check, Input, issueAt, Select } from '../kit/form.ts';
import { Table } from '../kit/list.ts';
import { Confirm, Dialog, toast } from '../kit/overlay.ts';
import { FailureBox, may, useAction } from '../kit/page.ts';
import { Picker, type Source, UUID } from '../kit/picker.ts';
import { currencies as allCurrencies, networks as allNetworks, offering, users, wallets } from '../kit/sources.ts';
import { onSignOut } from '../remembered.ts';
import { guardLeaving } from '../router.ts';
import { viewer } from '../session.ts';
import { ConditionTree } from './conditions.ts';
import { type Condition, type Draft, draftOf, eachCondition, memberAt, nameOf, OPTIONAL, ownPart, ruleInput, sideBySide, TEXTS } from './rule-draft.ts';
import { byPath, type Facts, Naming, PreviewPanel, Sentence, usePreview } from './rule-preview.ts';

const PATHS = Object.keys(TEXTS);
const APPROVALS = 'signAndApproveRule';
type Typed = { base: { draft: Draft; version: number | undefined }; draft: Draft };

/** Unsaved input by wallet and rule, which survives the end of a session, and the facts of previews, by wallet. */
const [TYPED, FACTS] = [new Map<string, Typed>(), new Map<string, Facts>()];
for (const kept of [TYPED, FACTS]) onSignOut(() => kept.clear());

export type EditorInput = { walletId: string; rule: Rule | undefined; networks: readonly { id: string }[]; onSaved(rule: Rule): void };

/** A rule as it was read, or a new one, to type on, and its preview. */
export function RuleEditor({ walletId, rule, networks, onSaved }: EditorInput) {
  const place = `${walletId} ${rule?.id}`;
  const kept = TYPED.get(place);
  const [only, second] = networks;
  const [base, setBase] = useState(() => kept?.base ?? { draft: draftOf(rule, second ? undefined : only?.id), version: rule?.version });
  const [draft, setDraft] = useState(kept?.draft ?? base.draft);
  const [facts, setFacts] = useState<Facts>(FACTS.get(walletId) ?? { values: {}, transfers: [] });
  const [theirs, setTheirs] = useState<Rule>();
  const [sent, setSent] = useState<unknown>();
  const { run, isBusy, failure, setFailure } = useAction();
  const form = useRef<HTMLFormElement>(null);
  const preview = usePreview(draft, facts);
  const isDirty = !isSame(draft, base.draft);
  useEffect(() => {
    if (!rule || rule.version === base.version) return;
    const stored = draftOf(rule);
    // A version that differs only in its status does not conflict with unsaved changes.
    if (!isDirty || isSame(stored, base.draft)) setBase({ draft: stored, version: rule.version });
    if (!isDirty) setDraft(stored);
  }, [rule?.version]);
  useEffect(() => {
    if (isDirty) TYPED.set(place, { base, draft });
    else TYPED.delete(place);
  }, [base, draft]);
  useEffect(() => void FACTS.set(walletId, facts), [facts]);
  useEffect(() => () => void (viewer.value && TYPED.delete(place)), []);
  useEffect(() => {
    if (failure?.issues.length) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [failure]);
  const take = (stored: Rule) => {
    const taken = draftOf(stored);
    setBase({ draft: taken, version: stored.version });
    // What was typed while the answer was on its way stays.
    setDraft((now) => (now === draft ? taken : now));
    setTheirs(undefined);
    setFailure(undefined);
    onSaved(stored);
  };
  const save = async (version: number | undefined) => {
    const input = ruleInput(draft);
    setSent(input);
    try {
      const stored = rule
        ? await mutate(ReplaceWalletRuleDocument, { walletId, id: rule.id, input, ifVersion: version ?? null })
        : await mutate(CreateWalletRuleDocument, { walletId, input });
      if (!rule) guardLeaving(undefined);
      take(stored);
      toast(rule ? `Saved as version ${stored.version}.` : 'Rule created. It is active.');
    } catch (error) {
      if (!rule || failureOf(error).code !== 'PreconditionError') throw error;
      const { walletRule } = await ask(WalletRuleDocument, { id: rule.id });
      if (!walletRule) throw new Error('The rule no longer exists. Your changes are still here.');
      setTheirs(walletRule);
    }
  };
  const put = (path: string) => (text: string) => {
    // Conditions have the currency of the rule, as long as they have no other.
    const follows = (one: Condition) =>
      path === 'networkCurrencyId' && one.network_currency_id === draft.fields[path] ? { ...one, network_currency_id: text } : one;
    setDraft({ ...draft, logic: eachCondition(draft.logic, follows), fields: { ...draft.fields, [path]: text } });
  };
  // An error of a member is about the value that was sent, and is removed once the value changes.
  const issues = (failure?.issues ?? [])
    .filter(({ path }) => isSame(memberAt(sent, path), memberAt(ruleInput(draft), path)))
    .map((issue) => ({ ...issue, message: issue.message.startsWith('must be a UUID') ? 'choose one from the list, or paste its id' : issue.message }));
  const { networkId = '' } = draft.fields;
  const currencies = UUID.test(networkId) ? offering(allCurrencies, ({ of }) => of === networkId) : allCurrencies;
  const sources: Readonly<Record<string, Source>> = {
    networkId: networks.length > 0 ? offering(allNetworks, (option) => networks.some(({ id }) => id === option.id)) : allNetworks,
    networkCurrencyId: currencies,
    'autoTransferRule.targetWalletId': offering(wallets, ({ id }) => id !== walletId),
    'signAndApproveRule.mandatoryUserId': users,
  };
  const field = (path: string) => {
    const { label, hint, options, attributes } = TEXTS[path] ?? { label: path };
    const value = draft.fields[path] ?? '';
    const given = { label, hint, value, issue: issueAt(issues, path), required: !OPTIONAL.test(path) };
    if (options) return html`<${Select} ...${given} options=${options} onChange=${put(path)} />`;
    if (sources[path]) return html`<${Picker} ...${given} source=${sources[path]} onChange=${put(path)} />`;
    return html`<${Input} ...${given} ...${attributes} onInput=${put(path)} />`;
  };
  const fields = (isShown: (path: string) => boolean) => html`<div class="leaf">${PATHS.filter(isShown).map(field)}</div>`;
  const fieldsIn = (part: string) => fields((path) => path.startsWith(part));
  const isApproved = draft.parts.includes(APPROVALS);
  const approve = () => setDraft({ ...draft, parts: isApproved ? draft.parts.filter((part) => part !== APPROVALS) : [...draft.parts, APPROVALS] });
  const own = ownPart(draft);
  const currencyId = draft.fields.networkCurrencyId ?? '';
  return html`<div class="sides">
    <div><p class="sentence" aria-label="What the rule does"><${Sentence} ...${{ draft, walletId }} /></p>
    <form class="card" ref=${form} autocomplete="off" aria-label="Rule" onSubmit=${(event: Event) => {
      event.preventDefault();
      void run(() => save(base.version));
    }}>
      <${FailureBox} failure=${failure} issues=${issues.map(({ path, message }) => ({ path: [nameOf(path)], message }))} />
      <fieldset class="plain" disabled=${!may('wallet-rules:write')}>
        ${fields((path) => !path.includes('.'))}
        ${
          own === 'autoTransferRule' &&
          html`<h2>When</h2>
          <${ConditionTree} logic=${draft.logic} issues=${issues} explained=${byPath(preview)} ...${{ currencyId, currencies }}
            onChange=${(logic: Draft['logic']) => setDraft({ ...draft, logic })} />`
        }
        <h2>${own === 'autoTransferRule' ? 'Then' : 'Limit'}</h2>
        ${fieldsIn(own)}
        <h2>Approvals</h2>
        <${Check} label="Others must sign and approve" checked=${isApproved} onChange=${approve} />
        ${isApproved && fieldsIn(APPROVALS)}
        <p class="actions sticky"><button type="submit" class="primary" disabled=${isBusy}>${rule ? 'Save' : 'Create the rule'}</button>
          <span role="status">${isDirty && 'Not saved yet.'}</span></p>
      </fieldset>
    </form></div>
    <${PreviewPanel} ...${{ walletId, ruleId: rule?.id, draft, preview, facts, onFacts: setFacts }} />
    <${LeaveGuard} isDirty=${isDirty} />
    ${theirs && html`<${Conflict} key=${theirs.version} ...${{ theirs, draft, take }} version=${base.version} save=${() => save(theirs.version)} onClose=${() => setTheirs(undefined)} />`}
  </div>`;
}

const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);

/** Asks before what is typed is left, in the console and in the browser. */
function LeaveGuard({ isDirty }: { isDirty: boolean }) {
  const [leaving, setLeaving] = useState<{ then(): void }>();
  useEffect(() => {
    if (!isDirty) return;
    const stay = (event: BeforeUnloadEvent) => event.preventDefault();
    guardLeaving((then) => setLeaving({ then }));
    addEventListener('beforeunload', stay);
    return () => {
      guardLeaving(undefined);
      removeEventListener('beforeunload', stay);
    };
  }, [isDirty]);
  if (!leaving) return null;
  const act = async () => [guardLeaving(undefined), leaving.then()];
  return html`<${Confirm} title="Leave without saving?" verb="Leave" keep="Keep editing" act=${act} onClose=${() => setLeaving(undefined)}>
    <p>Your changes are not saved anywhere and will be lost.</p><//>`;
}

type ConflictInput = { theirs: Rule; draft: Draft; version: number | undefined; take(rule: Rule): void; save(): Promise<void>; onClose(): void };

/** Both versions side by side, where the rule was changed while one typed. */
function Conflict({ theirs, draft, version, take, save, onClose }: ConflictInput) {
  const { run, isBusy, failure } = useAction();
  const [isRead, setRead] = useState(false);
  // A click that was meant for an earlier version is over by then.
  useEffect(() => void setTimeout(setRead, 1_000, true), []);
  const rows = sideBySide(ruleInput(draftOf(theirs)), ruleInput(draft));
  type Row = (typeof rows)[number];
  const differs = ({ before, after }: Row) => before !== after;
  const mark = (text: string | undefined, row: Row) => {
    const named = text === undefined ? 'not there' : html`<${Naming} text=${text} />`;
    return differs(row) ? html`<mark>${named}</mark>` : named;
  };
  return html`<${Dialog} title="The rule was changed by someone else" onClose=${onClose}>
    <p>You started from version ${version}; version ${theirs.version} is stored now. Nothing was saved, and your changes are still here.${' '}
      ${rows.filter(differs).length} of ${rows.length} members differ: they are marked.</p>
    <${Table} label="Both versions" rows=${rows} keyOf=${({ name }: Row) => name} columns=${[
      { title: 'Member', cell: (row: Row) => `${row.name}${differs(row) ? ' (differs)' : ''}` },
      { title: `Stored: version ${theirs.version}`, cell: (row: Row) => mark(row.before, row) },
      { title: 'Typed here', cell: (row: Row) => mark(row.after, row) },
    ]} />
    <${FailureBox} failure=${failure} />
    <p class="actions end"><button type="button" onClick=${onClose}>Keep editing</button>
      <button type="button" class="risky" onClick=${() => take(theirs)}>Discard my changes</button>
      <button type="button" class="danger" disabled=${isBusy || !isRead} onClick=${() => run(save)}>Overwrite version ${theirs.version}</button></p>
  <//>`;
}
