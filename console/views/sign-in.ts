import { useEffect, useRef, useState } from 'preact/hooks';
import { ask } from '../api.ts';
import { ViewerDocument } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Form, useForm } from '../kit/form.ts';
import { Page } from '../kit/page.ts';
import { rememberedClient } from '../remembered.ts';
import { beforeSignIn, linkedClient, notice, signIn, signOut, startSession } from '../session.ts';

/** Opens the views for the principal of the tokens. */
export async function enter(): Promise<void> {
  startSession((await ask(ViewerDocument, {})).me);
}

export function SignIn() {
  const known = linkedClient() || rememberedClient.get();
  const [isApi, setApi] = useState(false);
  const [isAsked, setAsked] = useState(known === '');
  const { given, setGiven, input, action } = useForm({ clientId: known, clientSecret: '', username: '', password: '' });
  const [tenant, setTenant] = useState('');
  const isOfLink = !isApi && !isAsked;
  useEffect(() => {
    if (isOfLink) void beforeSignIn(known).then(({ tenant_name = '' }) => setTenant(tenant_name));
  }, [isOfLink]);
  const box = useRef<HTMLDivElement>(null);
  // After the heading of the page has taken the focus.
  useEffect(() => box.current?.querySelector('input')?.focus(), [isApi, isAsked]);
  const start = async () => {
    const { clientId, clientSecret, username, password } = given;
    await signIn(isApi ? { clientId, clientSecret } : { clientId, username, password });
    await enter().catch((error: unknown) => {
      signOut();
      throw error;
    });
  };
  const change = () => {
    action.setFailure(undefined);
    setApi(!isApi);
    setGiven({ ...given, clientId: isApi ? known : '', clientSecret: '', password: '' });
  };
  return html`<div class="sign-in" ref=${box}><img src="icon.svg" alt="" width="40" height="40" /><${Page} title="Sign in to Portcullis">
    ${isOfLink && tenant !== '' && html`<p class="tenant">for <b>${tenant}</b></p>`}
    ${notice.value !== '' && html`<p class="note" role="status">${notice.value}</p>`}
    <${Form} class="card" ...${action} verb=${action.isBusy ? 'Signing in …' : 'Sign in'} act=${start}>
      ${(isApi || isAsked) && input('clientId', 'Client id', { hint: isApi ? undefined : 'From the link to the console of your organisation' })}
      ${
        isApi
          ? input('clientSecret', 'Client secret', { type: 'password', autocomplete: 'new-password' })
          : html`${input('username', 'Username', { autocomplete: 'username', autocapitalize: 'none' })}${input('password', 'Password', { type: 'password', autocomplete: 'current-password' })}`
      }<//>
    <p class="links">
      ${isOfLink && html`<button type="button" class="plain" onClick=${() => setAsked(true)}>Use another client id</button>`}
      <button type="button" class="plain" onClick=${change}>${isApi ? 'Sign in as a person' : 'Sign in as an API client'}</button>
    </p>
    ${isApi && html`<p class="muted">The secret stays in this tab’s memory. Reloading the page signs you out.</p>`}
  <//></div>`;
}
