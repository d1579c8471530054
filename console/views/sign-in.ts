import { useEffect, useRef, useState } from 'preact/hooks';
import { ask } from '../api.ts';
import { ViewerDocument } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Input } from '../kit/form.ts';
import { FailureBox, Page, useAction } from '../kit/page.ts';
import { rememberedClient } from '../remembered.ts';
import { letIn, linkedClient, notice, signIn, signOut } from '../session.ts';

/** Opens the views for the principal of the tokens. */
export async function enter(): Promise<void> {
  letIn((await ask(ViewerDocument, {})).me);
}

/** The form of the sign-in, and why a session has ended. */
export function SignIn() {
  const known = linkedClient() || rememberedClient.get();
  const [isApi, setApi] = useState(false);
  const [isAsked, setAsked] = useState(known === '');
  const [given, setGiven] = useState({ clientId: known, clientSecret: '', username: '', password: '' });
  const { run, isBusy, failure, setFailure } = useAction();
  const form = useRef<HTMLFormElement>(null);
  // After the heading of the page has taken the focus.
  useEffect(() => form.current?.querySelector('input')?.focus(), [isApi, isAsked]);
  const submit = (event: Event) => {
    event.preventDefault();
    const { clientId, clientSecret, username, password } = given;
    void run(async () => {
      await signIn(isApi ? { clientId, clientSecret } : { clientId, username, password });
      await enter().catch((error: unknown) => {
        signOut();
        throw error;
      });
    });
  };
  const change = () => {
    setFailure(undefined);
    setApi(!isApi);
    setGiven({ ...given, clientId: isApi ? known : '', clientSecret: '', password: '' });
  };
  const input = (name: keyof typeof given, label: string, more: object) =>
    html`<${Input} label=${label} name=${name} required value=${given[name]} onInput=${(text: string) => setGiven({ ...given, [name]: text })} ...${more} />`;
  return html`<div class="sign-in"><${Page} title="Sign in to Portcullis">
    ${notice.value !== '' && html`<p class="failure" role="status">${notice.value}</p>`}
    <form class="card" ref=${form} onSubmit=${submit}>
      ${(isApi || isAsked) && input('clientId', 'Client id', { hint: isApi ? undefined : 'From the link to the console of your organisation' })}
      ${
        isApi
          ? input('clientSecret', 'Client secret', { type: 'password' })
          : html`${input('username', 'Username', { autocomplete: 'username' })}${input('password', 'Password', { type: 'password', autocomplete: 'current-password' })}`
      }
      <${FailureBox} failure=${failure} />
      <button type="submit" class="primary" disabled=${isBusy}>${isBusy ? 'Signing in …' : 'Sign in'}</button>
    </form>
    <p class="links">
      ${!isApi && !isAsked && html`<button type="button" class="plain" onClick=${() => setAsked(true)}>Use another client id</button>`}
      <button type="button" class="plain" onClick=${change}>${isApi ? 'Sign in as a person' : 'Sign in as an API client'}</button>
    </p>
    ${isApi && html`<p class="muted">The secret stays in this tab’s memory. Reloading the page signs you out.</p>`}
  <//></div>`;
}
