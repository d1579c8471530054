import { render, type VNode } from 'preact';
import { useState } from 'preact/hooks';
import { AccountPage, AccountsPage } from './accounts.ts';
import { ask } from './api.ts';
import { AuditPage } from './audit.ts';
import { ViewerDocument } from './generated/graphql.ts';
import { html } from './html.ts';
import { MigrationPage, MigrationsPage } from './migrations.ts';
import { rememberedClient } from './remembered.ts';
import { go, leave, linkTo, place } from './router.ts';
import { RulePage } from './rules.ts';
import { letIn, notice, signIn, signOut, viewer } from './session.ts';
import { TransactionPage, TransactionsPage } from './transactions.ts';
import { FailureBox, Field, Guarded, Id, inputOf, Page, Time, useAction } from './ui.ts';
import { WalletPage } from './wallets.ts';

type View = VNode | VNode[] | undefined;

/** A part of the console: where it is, what its views need, and its view of what stands behind its path. */
type Section = readonly [path: string, title: string, needs: readonly string[], view: (...parts: string[]) => View];

function listed(List: () => View, One: (input: { id: string }) => View) {
  return (id?: string): View => (id === undefined ? html`<${List} />` : html`<${One} key=${id} id=${id} />`);
}

const SECTIONS: readonly Section[] = [
  ['transactions', 'Transactions', ['transactions:read'], listed(TransactionsPage, TransactionPage)],
  ['accounts', 'Accounts', ['accounts:read'], listed(AccountsPage, AccountPage)],
  ['migrations', 'User migrations', ['users:read'], listed(MigrationsPage, MigrationPage)],
  ['audit', 'Audit', ['audit:read'], () => html`<${AuditPage} />`],
];

/** A wallet and its rules, which are reached from an account. */
const WALLETS: Section = [
  'wallets',
  'Wallet',
  ['wallets:read', 'wallet-rules:read'],
  (id, rules, ruleId) => {
    if (id === undefined) return undefined;
    if (rules === undefined) return html`<${WalletPage} key=${id} id=${id} />`;
    return rules === 'rules' && ruleId !== undefined ? html`<${RulePage} key=${ruleId} walletId=${id} id=${ruleId} />` : undefined;
  },
];

function App() {
  if (!viewer.value) return html`<${SignIn} />`;
  const [path = 'transactions', ...rest] = place.value.parts;
  const [, title, needs, view] = [...SECTIONS, WALLETS].find(([known]) => known === path) ?? [];
  const content = view?.(...rest) ?? html`<${Page} title="Page not found"><p>Choose a page in the menu above.</p><//>`;
  return html`<${Bar} path=${path} /><${Guarded} key=${path} title=${title} needs=${needs ?? []}>${content}<//>`;
}

function Bar({ path }: { path: string }) {
  const { subject, clientId, tokenUse, nodeId, permissions, expiresAt } = viewer.value ?? {};
  const skip = (event: Event) => {
    event.preventDefault();
    document.querySelector('h1')?.focus();
  };
  return html`<a class="skip" href="#content" onClick=${skip}>Skip to content</a>
  <header class="bar"><span class="brand"><img src="icon.svg" alt="" width="24" height="24" />Portcullis</span>
    <nav aria-label="Main"><ul>${SECTIONS.map(([to, title, needs]) => {
      const isMissing = needs.some((permission) => !permissions?.includes(permission));
      return html`<li><a href=${linkTo([to])} aria-current=${to === path ? 'page' : undefined} class=${isMissing ? 'missing' : ''}>${title}</a></li>`;
    })}</ul></nav>
    <details class="who"><summary>${tokenUse === 'api' ? 'Client' : 'Supervisor'}</summary><dl>
      <div><dt>Subject</dt><dd><${Id} id=${subject} /></dd></div>
      <div><dt>Client</dt><dd><${Id} id=${clientId} /></dd></div>
      <div><dt>Tenant</dt><dd><${Id} id=${nodeId} /></dd></div>
      <div><dt>Permissions</dt><dd>${permissions?.map((name) => html`<code>${name}</code> `)}</dd></div>
      <div><dt>Session expires</dt><dd><${Time} at=${expiresAt} /></dd></div></dl></details>
    <button type="button" onClick=${() =>
      leave(() => {
        signOut();
        go('#/', { replaces: true });
      })}>Sign out</button>
  </header>`;
}

function SignIn() {
  const [by, setBy] = useState<'supervisor' | 'client'>('supervisor');
  const [given, setGiven] = useState({ clientId: rememberedClient.get(), clientSecret: '', username: '', password: '' });
  const [isKept, setKept] = useState(rememberedClient.get() !== '');
  const { run, isBusy, failure } = useAction();
  const submit = (event: Event) => {
    event.preventDefault();
    void run(async () => {
      await signIn(by === 'client' ? { ...given, username: '', password: '' } : given);
      rememberedClient.set(isKept ? given.clientId.trim() : '');
      try {
        letIn((await ask(ViewerDocument, {})).me);
      } catch (error) {
        signOut();
        throw error;
      }
    });
  };
  const input = (name: keyof typeof given, label: string, type: string, autocomplete: string) =>
    html`<${Field} label=${label}>${(
      described: object,
    ) => html`<input ...${described} type=${type} name=${name} autocomplete=${autocomplete} spellcheck="false" required
      value=${given[name]} onInput=${(event: Event) => setGiven({ ...given, [name]: inputOf(event) })} />`}<//>`;
  return html`<${Page} title="Sign in to Portcullis">
    ${notice.value !== '' && html`<p class="failure" role="status">${notice.value}</p>`}
    <form class="card narrow" onSubmit=${submit}>
      <fieldset class="choice"><legend>Sign in as</legend>${(['supervisor', 'client'] as const).map(
        (kind) =>
          html`<label><input type="radio" name="by" checked=${by === kind} onChange=${() => setBy(kind)} />${
            kind === 'client' ? 'API client' : 'Person'
          }</label>`,
      )}</fieldset>
      ${input('clientId', 'Client id', 'text', 'off')}
      ${input('clientSecret', 'Client secret', 'password', 'off')}
      ${by === 'supervisor' && input('username', 'Username', 'text', 'username')}
      ${by === 'supervisor' && input('password', 'Password', 'password', 'current-password')}
      <label class="check"><input type="checkbox" checked=${isKept} onChange=${() => setKept(!isKept)} />Remember the client id in this browser</label>
      <${FailureBox} failure=${failure} />
      <button type="submit" class="primary" disabled=${isBusy}>${isBusy ? 'Signing in …' : 'Sign in'}</button>
      <p class="muted">Secret and tokens stay in this tab’s memory. Reloading the page signs you out.</p>
    </form>
  <//>`;
}

render(html`<${App} />`, document.body);
