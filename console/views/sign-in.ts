import { useState } from 'preact/hooks';
import { ask } from '../api.ts';
import { ViewerDocument } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Field, inputOf } from '../kit/form.ts';
import { FailureBox, Page, useAction } from '../kit/page.ts';
import { rememberedClient } from '../remembered.ts';
import { letIn, notice, signIn, signOut } from '../session.ts';

/** The form of the sign-in, and why a session has ended. */
export function SignIn() {
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
