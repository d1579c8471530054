import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, failureOf, resultOf } from '../api.ts';
import { CreateWalletRuleDocument, ReplaceWalletRuleDocument, type RulePartsFragment as Rule, WalletRuleDocument } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Field, inputOf, issueAt } from '../kit/form.ts';
import { Table } from '../kit/list.ts';
import { Confirm, Dialog } from '../kit/overlay.ts';
import { FailureBox, may, useAction } from '../kit/page.ts';
import { words } from '../kit/text.ts';
import { onSignOut } from '../remembered.ts';
import { guardLeaving } from '../router.ts';
import { viewer } from '../session.ts';
import { ConditionTree } from './conditions.ts';
import { conditionsOf, type Draft, draftOf, memberAt, OPTIONAL, ownPart, ruleInput, sideBySide, TEXTS } from './rule-draft.ts';
import { byPath, type Facts, PreviewPanel, usePreview } from './rule-preview.ts';

/** What the editor takes. */
export interface EditorInput {
  walletId: string;
  /** The rule as it was read; undefined for a new one. */
  rule: Rule | undefined;
  networks: readonly { id: string; name: string }[];
  onSaved(rule: Rule): void;
}

type Typed = Partial<{ base: { draft: Draft; version: number | undefined }; draft: Draft; facts: Facts }>;

/** Unsaved input by wallet and rule: it survives the end of a session, and the facts survive a creation. */
const TYPED = new Map<string, Typed>();
onSignOut(() => TYPED.clear());

/** An editable rule and its preview. */
export function RuleEditor({ walletId, rule, networks, onSaved }: EditorInput) {
  const place = `${walletId} ${rule?.id}`;
  const kept = TYPED.get(place);
  const [base, setBase] = useState(() => kept?.base ?? { draft: draftOf(rule), version: rule?.version });
  const [draft, setDraft] = useState(kept?.draft ?? base.draft);
  const [facts, setFacts] = useState<Facts>(kept?.facts ?? { values: {}, transfers: [] });
  const [theirs, setTheirs] = useState<Rule>();
  const [saved, setSaved] = useState('');
  const [sent, setSent] = useState<unknown>();
  const { run, isBusy, failure, setFailure } = useAction();
  const form = useRef<HTMLFormElement>(null);
  const preview = usePreview(draft, facts);
  const isDirty = !isSame(draft, base.draft);
  useEffect(() => {
    // A version that differs only in its status does not conflict with unsaved changes.
    if (rule && rule.version !== base.version && isSame(draftOf(rule), base.draft)) setBase({ ...base, version: rule.version });
  }, [rule?.version]);
  useEffect(() => {
    if (isDirty) TYPED.set(place, { base, draft, facts });
    else TYPED.delete(place);
  }, [base, draft, facts]);
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
    setSaved('');
    setSent(input);
    try {
      const { result } = rule
        ? await ask(ReplaceWalletRuleDocument, { walletId, id: rule.id, input, ifVersion: version ?? null })
        : await ask(CreateWalletRuleDocument, { walletId, input });
      const stored = resultOf(result) as Rule;
      if (!rule) {
        guardLeaving(undefined);
        TYPED.set(`${walletId} ${stored.id}`, { facts });
      }
      take(stored);
      setSaved(`Saved as version ${stored.version}.`);
    } catch (error) {
      if (!rule || failureOf(error).code !== 'PreconditionError') throw error;
      const { walletRule } = await ask(WalletRuleDocument, { id: rule.id });
      if (!walletRule) throw new Error('The rule no longer exists. Your changes are still here.');
      setTheirs(walletRule);
    }
  };
  const put = (path: string) => (event: Event) => setDraft({ ...draft, fields: { ...draft.fields, [path]: inputOf(event) } });
  // An error of a member is about the value that was sent, and is removed once the value changes.
  const issues = failure?.issues.filter(({ path }) => isSame(memberAt(sent, path), memberAt(ruleInput(draft), path))) ?? [];
  const field = (path: string) => {
    const { label, hint, options, attributes } = TEXTS[path] ?? { label: path };
    const input = (described: object) =>
      options
        ? html`<select ...${described} value=${draft.fields[path]} onChange=${put(path)}>${options.map((option) => html`<option value=${option}>${words(option)}</option>`)}</select>`
        : html`<input ...${described} ...${attributes} required=${!OPTIONAL.test(path)} value=${draft.fields[path]} onInput=${put(path)} />`;
    const network = path === 'networkId' ? networks.find(({ id }) => id === draft.fields.networkId)?.name : undefined;
    return html`<${Field} label=${label} hint=${network ?? hint} issue=${issueAt(issues, path)}>${input}<//>`;
  };
  const fieldsIn = (part: string) =>
    Object.keys(TEXTS)
      .filter((path) => path.startsWith(part))
      .map(field);
  const isApproved = draft.parts.includes('signAndApproveRule');
  const others = draft.parts.filter((part) => part !== 'signAndApproveRule');
  const approve = () => setDraft({ ...draft, parts: isApproved ? others : [...others, 'signAndApproveRule'] });
  const own = ownPart(draft);
  const currencyId = draft.fields.networkCurrencyId ?? '';
  const currencies = new Set([currencyId, ...conditionsOf(draft.logic).map(([, condition]) => condition.network_currency_id)]);
  return html`<div class="sides">
    <form class="card" ref=${form} autocomplete="off" aria-label="Rule" onSubmit=${(event: Event) => {
      event.preventDefault();
      void run(() => save(base.version));
    }}>
      <${FailureBox} failure=${failure} issues=${issues} />
      <fieldset class="plain" disabled=${!may('wallet-rules:write')}>
        ${['name', 'type', 'networkId', 'networkCurrencyId', 'priority'].map(field)}
        <datalist id="networks">${networks.map(({ id, name }) => html`<option value=${id}>${name}</option>`)}</datalist>
        <datalist id="currencies">${[...currencies].filter(Boolean).map((id) => html`<option value=${id}></option>`)}</datalist>
        <h2>${own === 'autoTransferRule' ? 'Transfer' : 'Limit'}</h2>
        ${fieldsIn(own)}
        ${
          own === 'autoTransferRule' &&
          html`<h2>Conditions</h2>
          <${ConditionTree} logic=${draft.logic} issues=${issues} explained=${byPath(preview)} currencyId=${currencyId}
            onChange=${(logic: Draft['logic']) => setDraft({ ...draft, logic })} />`
        }
        <h2>Approvals</h2>
        <label class="check"><input type="checkbox" checked=${isApproved} onChange=${approve} />Others must sign and approve</label>
        ${isApproved && fieldsIn('signAndApproveRule')}
        <p class="actions"><button type="submit" class="primary" disabled=${isBusy}>${rule ? 'Save' : 'Create the rule'}</button>
          <span role="status">${isDirty ? 'Not saved yet.' : saved}</span></p>
      </fieldset>
    </form>
    <${PreviewPanel} ...${{ draft, preview, facts, onFacts: setFacts }} />
    <${LeaveGuard} isDirty=${isDirty} />
    ${theirs && html`<${Conflict} ...${{ theirs, draft, take }} version=${base.version} save=${() => save(theirs.version)} onClose=${() => setTheirs(undefined)} />`}
  </div>`;
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

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
  const act = async () => {
    guardLeaving(undefined);
    leaving.then();
  };
  return html`<${Confirm} title="Leave without saving?" verb="Leave" keep="Keep editing" act=${act} onClose=${() => setLeaving(undefined)}>
    <p>Your changes are not saved anywhere and will be lost.</p><//>`;
}

type ConflictInput = { theirs: Rule; draft: Draft; version: number | undefined; take(rule: Rule): void; save(): Promise<void>; onClose(): void };

/** Both versions side by side, where the rule was changed while one typed. */
function Conflict({ theirs, draft, version, take, save, onClose }: ConflictInput) {
  const [choice, setChoice] = useState<'take' | 'save'>();
  const rows = sideBySide(ruleInput(draftOf(theirs)), ruleInput(draft));
  const choices = {
    take: { title: 'Use the stored version?', verb: 'Take it', act: async () => take(theirs), children: 'Your changes will be lost.' },
    save: { title: `Save over version ${theirs.version}?`, verb: 'Save mine', act: save, children: 'Your changes replace it completely.' },
  };
  type Row = (typeof rows)[number];
  const differs = ({ before, after }: Row) => before !== after;
  const mark = (text: string | undefined, row: Row) => (differs(row) ? html`<mark>${text ?? 'not there'}</mark>` : text);
  return html`<${Dialog} title="The rule was changed by someone else" onClose=${onClose}>
    <p>You started from version ${version}; version ${theirs.version} is stored now. Nothing was saved, and your changes are still here.${' '}
      ${rows.filter(differs).length} of ${rows.length} members differ: they are marked.</p>
    <${Table} label="Both versions" rows=${rows} keyOf=${({ name }: Row) => name} columns=${[
      { title: 'Member', cell: (row: Row) => `${row.name}${differs(row) ? ' (differs)' : ''}` },
      { title: `Stored: version ${theirs.version}`, cell: (row: Row) => mark(row.before, row) },
      { title: 'Typed here', cell: (row: Row) => mark(row.after, row) },
    ]} />
    <p class="actions"><button type="button" onClick=${onClose}>Keep editing</button>
      <button type="button" onClick=${() => setChoice('take')}>Use the stored version</button>
      <button type="button" onClick=${() => setChoice('save')}>Overwrite with my version</button></p>
    ${choice && html`<${Confirm} ...${choices[choice]} onClose=${() => setChoice(undefined)} />`}
  <//>`;
}
