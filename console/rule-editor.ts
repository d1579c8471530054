import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, Failure, failureOf, resultOf } from './api.ts';
import { ConditionTree } from './conditions.ts';
import { CreateWalletRuleDocument, ReplaceWalletRuleDocument, type RulePartsFragment as Rule, WalletRuleDocument } from './generated/graphql.ts';
import { html } from './html.ts';
import { guardLeaving } from './router.ts';
import { conditionsOf, type Draft, draftOf, OPTIONAL, ownPart, type Part, ruleInput, sideBySide } from './rule-draft.ts';
import { byPath, NO_FACTS, PreviewPanel, usePreview } from './rule-preview.ts';
import { words } from './transactions.ts';
import { Confirm, Dialog, FailureBox, Field, inputOf, issueAt, may, Table, useAction } from './ui.ts';

interface EditorInput {
  walletId: string;
  /** The rule as it was read; undefined for a new one. */
  rule: Rule | undefined;
  networks: readonly { id: string; name: string }[];
  onSaved(rule: Rule): void;
}

/** A rule to type on, with its preview beside it. */
export function RuleEditor({ walletId, rule, networks, onSaved }: EditorInput) {
  const [base, setBase] = useState(() => ({ draft: draftOf(rule), version: rule?.version }));
  const [draft, setDraft] = useState(base.draft);
  const [facts, setFacts] = useState(NO_FACTS);
  const [theirs, setTheirs] = useState<Rule>();
  const [saved, setSaved] = useState('');
  const { run, isBusy, failure, setFailure } = useAction();
  const form = useRef<HTMLFormElement>(null);
  const told = usePreview(draft, facts);
  const isDirty = JSON.stringify(draft) !== JSON.stringify(base.draft);
  useEffect(() => {
    // A change of the status alone, made on this page, is no conflict with what is typed.
    if (rule && base.version !== undefined && rule.version === base.version + 1) setBase({ ...base, version: rule.version });
  }, [rule?.version]);
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
    try {
      const { result } = rule
        ? await ask(ReplaceWalletRuleDocument, { walletId, id: rule.id, input, ifVersion: version ?? null })
        : await ask(CreateWalletRuleDocument, { walletId, input });
      const stored = resultOf(result) as Rule;
      if (!rule) guardLeaving(undefined);
      take(stored);
      setSaved(`Saved as version ${stored.version}.`);
    } catch (error) {
      if (!rule || failureOf(error).kind !== 'PreconditionError') throw error;
      const { walletRule } = await ask(WalletRuleDocument, { id: rule.id });
      if (!walletRule) throw new Failure('The rule is not there any more: what you typed is still here.');
      setTheirs(walletRule);
    }
  };
  const put = (path: string) => (event: Event) => setDraft({ ...draft, fields: { ...draft.fields, [path]: inputOf(event) } });
  const issues = failure?.issues ?? [];
  const field = (path: string, label: string, attributes: object = {}, hint?: string) => html`<${Field} label=${label} hint=${hint}
    issue=${issueAt(issues, path)}>${(described: object) => html`<input ...${described} required=${!OPTIONAL.test(path)} ...${attributes} value=${draft.fields[path]} onInput=${put(path)} />`}<//>`;
  const choice = (path: string, label: string, options: readonly string[]) =>
    html`<${Field} label=${label} issue=${issueAt(issues, path)}>${(described: object) =>
      html`<select ...${described} value=${draft.fields[path]} onChange=${put(path)}>${options.map((option) => html`<option value=${option}>${words(option)}</option>`)}</select>`}<//>`;
  const hasPart = (part: Part, label: string) =>
    html`<label class="check"><input type="checkbox" checked=${draft.parts.includes(part)} onChange=${() =>
      setDraft({
        ...draft,
        parts: draft.parts.includes(part) ? draft.parts.filter((known) => known !== part) : [...draft.parts, part],
      })} />${label}</label>`;
  const own = ownPart(draft);
  const other: Part = own === 'autoTransferRule' ? 'permissionlessTransferLimitRule' : 'autoTransferRule';
  const currencyId = draft.fields.networkCurrencyId ?? '';
  const conditions = conditionsOf(draft.logic);
  const currencies = new Set([currencyId, ...conditions.map(([, condition]) => condition.network_currency_id)]);
  return html`<div class="sides">
    <form class="card" ref=${form} autocomplete="off" aria-label="Rule" onSubmit=${(event: Event) => {
      event.preventDefault();
      void run(() => save(base.version));
    }}>
      <${FailureBox} failure=${failure && new Failure(failure.message, { ...failure, issues: withoutField(failure, draft) })} />
      <fieldset class="plain" disabled=${!may('wallet-rules:write')}>
        ${field('name', 'Name')}
        ${choice('type', 'Type', ['auto_transfer', 'permissionless_transfer_limit'])}
        ${field('networkId', 'Network id', { list: 'networks' }, networks.find(({ id }) => id === draft.fields.networkId)?.name)}
        ${field('networkCurrencyId', 'Currency id of the rule', { list: 'currencies' })}
        ${field('priority', 'Priority', { inputmode: 'numeric' }, '1 to 100, or empty')}
        <datalist id="networks">${networks.map(({ id, name }) => html`<option value=${id}>${name}</option>`)}</datalist>
        <datalist id="currencies">${[...currencies].filter(Boolean).map((id) => html`<option value=${id}></option>`)}</datalist>
        ${
          own === 'autoTransferRule'
            ? html`<h2>Transfer</h2>
          ${choice('autoTransferRule.type', 'Approval', ['auto', 'auto_with_approve'])}
          ${field('autoTransferRule.amount', 'Amount', { inputmode: 'decimal' })}
          ${field('autoTransferRule.targetWalletId', 'Target wallet id')}
          <h2>Conditions</h2>
          <${ConditionTree} logic=${draft.logic} issues=${issues} explained=${byPath(told)} currencyId=${currencyId}
            onChange=${(logic: Draft['logic']) => setDraft({ ...draft, logic })} />`
            : html`<h2>Limit</h2>
          ${field('permissionlessTransferLimitRule.maxAmount', 'Maximum in the window', { inputmode: 'numeric' }, 'a whole number')}
          ${choice('permissionlessTransferLimitRule.timePeriod', 'Period', ['hour', 'day', 'week', 'month', 'year'])}
          ${field('permissionlessTransferLimitRule.timePeriodValue', 'Periods in the window', { inputmode: 'numeric' })}`
        }
        <h2>Approvals</h2>
        ${hasPart('signAndApproveRule', 'Others must sign and approve')}
        ${
          draft.parts.includes('signAndApproveRule') &&
          html`${field('signAndApproveRule.mandatoryUserId', 'Id of a user who must be among them', {}, 'may be empty')}
          ${field('signAndApproveRule.minPriority', 'Lowest priority of an approver', { inputmode: 'numeric' }, '1 to 100, or empty')}
          ${field('signAndApproveRule.maxPriority', 'Highest priority of an approver', { inputmode: 'numeric' }, '1 to 100, or empty')}
          ${field('signAndApproveRule.minUserCount', 'How many must approve', { inputmode: 'numeric' }, 'at least 1, or empty')}`
        }
        ${rule?.[other] && hasPart(other, 'Keep the part of the other type, which is stored and never evaluated')}
        <p class="actions"><button type="submit" class="primary" disabled=${isBusy}>${rule ? 'Save' : 'Create the rule'}</button>
          ${isDirty && html`<button type="button" onClick=${() => setDraft(base.draft)}>Undo all changes</button>`}
          <span role="status">${isDirty ? 'Not saved yet.' : saved}</span></p>
      </fieldset>
    </form>
    <${PreviewPanel} ...${{ draft, told, facts, onFacts: setFacts }} />
    <${LeaveGuard} isDirty=${isDirty} />
    ${theirs && html`<${Conflict} ...${{ theirs, draft, take }} version=${base.version} save=${() => save(theirs.version)} onClose=${() => setTheirs(undefined)} />`}
  </div>`;
}

/** Returns the issues of members that are not shown, so that a summary tells them. */
function withoutField({ issues }: Failure, draft: Draft) {
  const own = ownPart(draft);
  const shown = new Set(
    Object.keys(draft.fields).filter((path) => {
      const [part, member] = path.split('.');
      return member === undefined || part === own || (part === 'signAndApproveRule' && draft.parts.includes(part));
    }),
  );
  if (own === 'autoTransferRule')
    for (const [path, condition] of conditionsOf(draft.logic)) for (const name of Object.keys(condition)) shown.add(`${path}.${name}`);
  return issues.filter(({ path }) => !shown.has(path.join('.')));
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
  return html`<${Confirm} title="Leave without saving?" verb="Leave" keep="Go on editing" act=${act} onClose=${() => setLeaving(undefined)}>
    <p>What you have typed is lost: it is kept nowhere.</p><//>`;
}

interface ConflictInput {
  theirs: Rule;
  draft: Draft;
  version: number | undefined;
  take(rule: Rule): void;
  save(): Promise<void>;
  onClose(): void;
}

/** Both versions side by side, where the rule was changed while one typed. */
function Conflict({ theirs, draft, version, take, save, onClose }: ConflictInput) {
  const [choice, setChoice] = useState<'take' | 'save'>();
  const rows = sideBySide(ruleInput(draftOf(theirs)), ruleInput(draft));
  const back = () => setChoice(undefined);
  type Row = (typeof rows)[number];
  const differs = ({ before, after }: Row) => before !== after;
  const mark = (text: string | undefined, row: Row) => (differs(row) ? html`<mark>${text ?? 'not there'}</mark>` : text);
  return html`<${Dialog} title="The rule was changed meanwhile" onClose=${onClose}>
    <p>You began with version ${version}; version ${theirs.version} is stored now. Nothing was saved, and what you typed is still here.${' '}
      ${rows.filter(differs).length} of ${rows.length} members differ: they are marked.</p>
    <${Table} label="Both versions" rows=${rows} keyOf=${({ name }: Row) => name} columns=${[
      { title: 'Member', cell: (row: Row) => `${row.name}${differs(row) ? ' (differs)' : ''}` },
      { title: `Stored: version ${theirs.version}`, cell: (row: Row) => mark(row.before, row) },
      { title: 'Typed here', cell: (row: Row) => mark(row.after, row) },
    ]} />
    <p class="actions"><button type="button" onClick=${onClose}>Go on editing</button>
      <button type="button" onClick=${() => setChoice('take')}>Take the stored one</button>
      <button type="button" onClick=${() => setChoice('save')}>Save mine over it</button></p>
    ${choice === 'take' && html`<${Confirm} title="Take the stored version?" verb="Take it" act=${async () => take(theirs)} onClose=${back}><p>What you have typed is lost.</p><//>`}
    ${
      choice === 'save' &&
      html`<${Confirm} title=${`Save over version ${theirs.version}?`} verb="Save mine" act=${save} onClose=${back}>
      <p>What you have typed replaces version ${theirs.version} in full. That one stays in the history of versions.</p><//>`
    }
  <//>`;
}
