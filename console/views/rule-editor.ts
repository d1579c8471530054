import type { ComponentChildren as Content } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, failureOf, mutate } from '../api.ts';
import { CreateWalletRuleDocument, PreviewWalletRuleDocument, ReplaceWalletRuleDocument, WalletRuleDocument } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Check, Input, issueAt, Select } from '../kit/form.ts';
import { Table } from '../kit/list.ts';
import { Confirm, Dialog, LeaveGuard, toast } from '../kit/overlay.ts';
import { FailureBox, may, useAction } from '../kit/page.ts';
import { type Option, Picker, type Source, UUID } from '../kit/picker.ts';
import { currencies as allCurrencies, networks as allNetworks, offering, users, wallets } from '../kit/sources.ts';
import { onSignOut } from '../remembered.ts';
import { guardLeaving } from '../router.ts';
import { viewer } from '../session.ts';
import { ConditionTree } from './conditions.ts';
import type { Compared, Condition, Draft, Rule } from './rule-draft.ts';
import { differing, draftOf, eachCondition, faultsOf, memberAt, nameOf, OPTIONAL, ownPart, ruleInput, sideBySide, TEXTS } from './rule-draft.ts';
import { Both, byPath, type Facts, Member, PreviewPanel, Sentence, usePreview, Warnings } from './rule-preview.ts';
import { weakenings } from './rule-strength.ts';

const PATHS = Object.keys(TEXTS);
const APPROVALS = 'signAndApproveRule' as const;
const HINTS: Readonly<Record<string, (chain: string) => string>> = {
  'autoTransferRule.targetWalletId': (chain) => `Wallets on ${chain} are offered; paste the id of another one.`,
};
const TIMING = 'autoTransferRule.type';
const COUNT = 'signAndApproveRule.minUserCount';
/** A character that no number has: it is refused while it is typed. */
const NO_NUMBER = /[^\d.]/;
type Typed = { base: { draft: Draft; version: number | undefined }; draft: Draft };

/** Unsaved input by wallet and rule, which survives the end of a session, and the facts of previews, by wallet. */
const [TYPED, FACTS] = [new Map<string, Typed>(), new Map<string, Facts>()];
for (const kept of [TYPED, FACTS]) onSignOut(() => kept.clear());

/** An older version of the rule that is to be restored. */
export type Restored = { version: number; draft: Draft };
export type EditorInput = {
  walletId: string;
  rule: Rule | undefined;
  /** The chain of the wallet, and the networks that are assigned to it. */
  chain: string;
  networks: readonly { id: string }[];
  restored?: Restored | undefined;
  onSaved(rule: Rule): void;
};

/** A rule as it was read, or a new one, to type on, and its preview. */
export function RuleEditor({ walletId, rule, chain, networks, restored, onSaved }: EditorInput) {
  const place = `${walletId} ${rule?.id}`;
  const kept = TYPED.get(place);
  const [only, second] = networks;
  const [base, setBase] = useState(() => kept?.base ?? { draft: draftOf(rule, second ? undefined : only?.id), version: rule?.version });
  const [draft, setDraft] = useState(kept?.draft ?? base.draft);
  const [facts, setFacts] = useState<Facts>(FACTS.get(walletId) ?? { values: {}, transfers: [] });
  const [theirs, setTheirs] = useState<Rule>();
  const [reason, setReason] = useState('');
  const [restoring, setRestoring] = useState<Restored>();
  /** What is asked about before the rule is saved: what can hardly be meant, and what the change takes from its protection. */
  const [doubts, setDoubts] = useState<{ warnings: readonly { message: string }[]; points: readonly string[] }>();
  const [sent, setSent] = useState<unknown>();
  const { run, isBusy, failure, setFailure } = useAction();
  const form = useRef<HTMLFormElement>(null);
  const preview = usePreview(draft, facts, walletId);
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
  useEffect(() => {
    setRestoring(restored);
    if (restored) setDraft(restored.draft);
  }, [restored]);
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
    setReason('');
    setRestoring(undefined);
    onSaved(stored);
  };
  const submit = async () => {
    const input = ruleInput(draft);
    const issues = faultsOf(draft);
    setSent(input);
    if (issues.length > 0) return setFailure({ message: 'Nothing was saved. Correct the marked fields.', issues });
    const previewed = await ask(PreviewWalletRuleDocument, { input: { rule: input, walletId, balances: [] } }).catch((error: unknown) => {
      // Saving what is invalid says at which field.
      if (failureOf(error).issues.length === 0) throw error;
    });
    const warnings = previewed?.previewWalletRule.warnings ?? [];
    const points = rule ? weakenings(base.draft, draft) : [];
    if (warnings.length + points.length > 0) return setDoubts({ warnings, points });
    await save(base.version);
  };
  const save = async (version: number | undefined) => {
    const input = ruleInput(draft);
    setSent(input);
    try {
      const stored = rule
        ? await mutate(ReplaceWalletRuleDocument, { walletId, id: rule.id, input, ifVersion: version ?? null, reason: reason.trim() || null })
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
  const isApproved = draft.parts.includes(APPROVALS);
  const put = (path: string) => (text: string) => {
    // Conditions have the currency of the rule, as long as they have no other.
    const follows = (one: Condition) =>
      path === 'networkCurrencyId' && one.network_currency_id === draft.fields[path] ? { ...one, network_currency_id: text } : one;
    // Who waits for an approval needs one.
    const waits = path === TIMING && text === 'auto_with_approve' && !isApproved;
    const parts = waits ? [...draft.parts, APPROVALS] : draft.parts;
    const count = waits ? { [COUNT]: draft.fields[COUNT] || '1' } : {};
    setDraft({ logic: eachCondition(draft.logic, follows), parts, fields: { ...draft.fields, ...count, [path]: text } });
  };
  // An error of a member is about the value that was sent, and is removed once the value changes.
  const issues = (failure?.issues ?? []).filter(({ path }) => isSame(memberAt(sent, path), memberAt(ruleInput(draft), path)));
  const { networkId = '' } = draft.fields;
  // What the wallet cannot reach is not offered; its id can still be pasted.
  const isReached = (option: Option) => option.chain === chain;
  const isAssigned = ({ id }: Option) => networks.length === 0 || networks.some((network) => network.id === id);
  const currencies = offering(allCurrencies, (option) => isReached(option) && (!UUID.test(networkId) || option.of === networkId));
  const sources: Readonly<Record<string, Source>> = {
    networkId: offering(allNetworks, (option) => isReached(option) && isAssigned(option)),
    networkCurrencyId: currencies,
    'autoTransferRule.targetWalletId': offering(wallets, (option) => isReached(option) && option.id !== walletId),
    'signAndApproveRule.mandatoryUserId': users,
  };
  const field = (path: string) => {
    const { label, hint, options, attributes } = TEXTS[path] ?? { label: path };
    const value = draft.fields[path] ?? '';
    const given = { label, hint: HINTS[path]?.(chain) ?? hint, value, issue: issueAt(issues, path), required: !OPTIONAL.test(path) };
    if (options) return html`<${Select} ...${given} options=${options} onChange=${put(path)} />`;
    if (sources[path]) return html`<${Picker} ...${given} source=${sources[path]} onChange=${put(path)} />`;
    const typed = NO_NUMBER.test(value) && attributes ? TEXTS[path]?.check?.(value.trim()) : undefined;
    return html`<${Input} ...${given} issue=${given.issue ?? typed} ...${attributes} onInput=${put(path)} />`;
  };
  const fields = (isShown: (path: string) => boolean) => html`<div class="leaf">${PATHS.filter(isShown).map(field)}</div>`;
  const fieldsIn = (part: string) => fields((path) => path.startsWith(part));
  const approve = () => {
    const parts = isApproved ? draft.parts.filter((part) => part !== APPROVALS) : [...draft.parts, APPROVALS];
    // Without an approval there is nothing to wait for; with one, to transfer at once is a choice.
    setDraft({ ...draft, parts, fields: { ...draft.fields, [TIMING]: isApproved ? 'auto' : 'auto_with_approve' } });
  };
  const own = ownPart(draft);
  const currencyId = draft.fields.networkCurrencyId ?? '';
  const asksWhy = restoring ? `Why is version ${restoring.version} restored?` : 'Reason for the change';
  const why =
    rule &&
    isDirty &&
    html`<${Input} label=${asksWhy} maxlength="1024" required=${restoring !== undefined} issue=${issueAt(issues, 'reason')}
      hint=${`The history keeps it.${restoring ? '' : ' May be empty.'}`} value=${reason} onInput=${setReason} />`;
  return html`<div class="sides">
    <div><p class="sentence" aria-label="What the rule does"><${Sentence} ...${{ draft, walletId }} /></p>
    <form class="card" ref=${form} autocomplete="off" aria-label="Rule" onSubmit=${(event: Event) => {
      event.preventDefault();
      void run(submit);
    }}>
      ${restoring && html`<${Restoring} ...${{ restoring, base, draft }} onDiscard=${() => [setDraft(base.draft), setRestoring(undefined)]}>${why}<//>`}
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
        ${!restoring && why}
        <p class="actions sticky"><button type="submit" class="primary" disabled=${isBusy}>${rule ? 'Save' : 'Create the rule'}</button>
          <span role="status">${isDirty && 'Not saved yet.'}</span></p>
      </fieldset>
    </form></div>
    <${PreviewPanel} ...${{ walletId, ruleId: rule?.id, draft, preview, facts, onFacts: setFacts }} />
    <${LeaveGuard} isDirty=${isDirty} />
    ${doubts && html`<${Doubts} ...${{ ...doubts, walletId, base, draft }} act=${() => save(base.version)} onClose=${() => setDoubts(undefined)} />`}
    ${theirs && html`<${Conflict} key=${theirs.version} ...${{ walletId, theirs, draft, take }} version=${base.version} save=${() => save(theirs.version)} onClose=${() => setTheirs(undefined)} />`}
  </div>`;
}

const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);

type Base = Typed['base'];
type DoubtsInput = {
  walletId: string;
  base: Base;
  draft: Draft;
  warnings: readonly { message: string }[];
  points: readonly string[];
  act(): Promise<void>;
  onClose(): void;
};

/** Asks before a rule is saved that can hardly be meant so, or that protects less than before; then with both sentences. */
function Doubts({ walletId, base, draft, warnings, points, act, onClose }: DoubtsInput) {
  const isWeaker = points.length > 0;
  const sides = [[`Now: version ${base.version}`, base.draft] as const, ['As typed here', draft] as const];
  return html`<${Confirm} title=${isWeaker ? `Less protection than version ${base.version}` : 'Is this what you mean?'} keep="Keep editing"
    verb=${isWeaker ? 'Save with less protection' : 'Save anyway'} act=${act} onClose=${onClose}>
    <${Warnings} of=${warnings} />
    ${isWeaker && html`<${Both} ...${{ walletId, sides }} /><${Points} of=${points} />`}<//>`;
}

const Points = ({ of }: { of: readonly string[] }) => html`<ul class="changes" aria-label="Less protection">${of.map((point) => html`<li>${point}</li>`)}</ul>`;

/** Says that the form is filled from an older version, what would change, and asks why. */
function Restoring({ restoring, base, draft, onDiscard, children }: { restoring: Restored; base: Base; draft: Draft; onDiscard(): void; children: Content }) {
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    box.current?.focus();
    box.current?.scrollIntoView({ block: 'center' });
  }, [restoring]);
  return html`<section class="warning restoring" aria-label="Restoring" ref=${box} tabindex="-1"><p><b>Version ${restoring.version} is in the form, and not saved yet.</b> It changes:</p>
    <${Differences} before=${base.draft} after=${draft} />${children}
    <p class="actions"><button type="submit" class="primary">Save it as version ${(base.version ?? 0) + 1}</button><button type="button" onClick=${onDiscard}>Keep version ${base.version}</button></p></section>`;
}

type DifferencesInput = { before: Draft; after: Draft; isShown?(path: string): boolean };

/** The members that differ, in words: the old value, and the new one. */
export function Differences({ before, after, isShown = () => true }: DifferencesInput) {
  const rows = differing(before, after).filter(({ path }) => isShown(path));
  if (rows.length === 0) return null;
  return html`<ul class="changes">${rows.map(
    ({ path, name, before: old, after: fresh }) => html`<li><b>${name}</b>: <del><${Member} path=${path} draft=${before} text=${old} /></del>${' → '}
      <ins><${Member} path=${path} draft=${after} text=${fresh} /></ins></li>`,
  )}</ul>`;
}

type ConflictInput = {
  walletId: string;
  theirs: Rule;
  draft: Draft;
  version: number | undefined;
  take(rule: Rule): void;
  save(): Promise<void>;
  onClose(): void;
};

/** Both versions side by side, where the rule was changed while one typed. */
function Conflict({ walletId, theirs, draft, version, take, save, onClose }: ConflictInput) {
  const { run, isBusy, failure } = useAction();
  const [isRead, setRead] = useState(false);
  // A click that was meant for an earlier version is over by then.
  useEffect(() => void setTimeout(setRead, 1_000, true), []);
  const stored = draftOf(theirs);
  const rows = sideBySide(stored, draft);
  const points = weakenings(stored, draft);
  const differs = ({ before, after }: Compared) => before !== after;
  const mark = (side: Draft, text: string | undefined, row: Compared) => {
    const named = html`<${Member} path=${row.path} draft=${side} text=${text} />`;
    return differs(row) ? html`<mark>${named}</mark>` : named;
  };
  return html`<${Dialog} title="The rule was changed by someone else" onClose=${onClose}>
    <p>You started from version ${version}; version ${theirs.version} is stored now. Nothing was saved, and your changes are still here.${' '}
      ${rows.filter(differs).length} of ${rows.length} members differ: they are marked.</p>
    <${Table} label="Both versions" rows=${rows} keyOf=${({ name }: Compared) => name} columns=${[
      { title: 'Member', cell: (row: Compared) => `${row.name}${differs(row) ? ' (differs)' : ''}` },
      { title: `Stored: version ${theirs.version}`, cell: (row: Compared) => mark(stored, row.before, row) },
      { title: 'Typed here', cell: (row: Compared) => mark(draft, row.after, row) },
    ]} />
    ${
      points.length > 0 &&
      html`<h3>To overwrite it leaves less protection</h3>
      <${Both} ...${{
        walletId,
        sides: [
          [`Stored: version ${theirs.version}`, stored],
          ['Typed here', draft],
        ] as const,
      }} /><${Points} of=${points} />`
    }
    <${FailureBox} failure=${failure} />
    <p class="actions end"><button type="button" onClick=${onClose}>Keep editing</button>
      <button type="button" class="risky" onClick=${() => take(theirs)}>Discard my changes</button>
      <button type="button" class="danger" disabled=${isBusy || !isRead} onClick=${() => run(save)}>Overwrite version ${theirs.version}</button></p>
  <//>`;
}
