import { mutate } from '../api.ts';
import { ChangeOwnPasswordDocument, EndOwnSessionsDocument } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Form, useForm } from '../kit/form.ts';
import { ConfirmButton, toast } from '../kit/overlay.ts';
import { Empty, Page } from '../kit/page.ts';
import { signIn, signOut, viewer } from '../session.ts';

const NOTHING = { current: '', new: '', repeated: '' };
const NEW = { type: 'password', autocomplete: 'new-password' };

export const show = () => html`<${Page} title="My password and sessions"><${Profile} /><//>`;

function Profile() {
  const { given, setGiven, input, action } = useForm(NOTHING);
  const { username, clientId } = viewer.value ?? {};
  if (!username || !clientId) return html`<${Empty} icon="person">An API client has no password.<//>`;
  const isRepeated = given.repeated === '' || given.repeated === given.new;
  const change = async () => {
    await mutate(ChangeOwnPasswordDocument, { current: given.current, new: given.new });
    // The change has ended all sessions, this one too.
    await signIn({ clientId, username, password: given.new });
    setGiven(NOTHING);
    toast('Password changed. Your other sessions have ended.');
  };
  const end = async () => {
    await mutate(EndOwnSessionsDocument, {});
    signOut('All your sessions have ended.');
  };
  return html`<section class="card narrow"><h2>Change the password</h2>
      <${Form} ...${action} verb="Change the password" isReady=${isRepeated} act=${change}>
        ${input('current', 'Current password', { type: 'password', autocomplete: 'current-password' })}
        ${input('new', 'New password', { ...NEW, hint: 'At least 8 characters. Your other sessions end.' })}
        ${input('repeated', 'New password again', { ...NEW, issue: isRepeated ? undefined : 'It differs from the new password.' })}<//>
    </section>
    <section class="card narrow"><h2>Sessions</h2>
      <p>If you have signed in somewhere and left it open, or somebody may know your session, end all of them, this one too.</p>
      <p class="actions end"><${ConfirmButton} title="End all your sessions?" verb="End all my sessions" act=${end}><p>You are signed out everywhere.</p><//></p>
    </section>`;
}
