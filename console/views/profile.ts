import { useState } from 'preact/hooks';
import { ask, resultOf } from '../api.ts';
import { ChangeOwnPasswordDocument, EndOwnSessionsDocument } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Input } from '../kit/form.ts';
import { Confirm, toast } from '../kit/overlay.ts';
import { Empty, FailureBox, Page, useAction } from '../kit/page.ts';
import { signIn, signOut, viewer } from '../session.ts';

export function show() {
  return html`<${ProfilePage} />`;
}

const NOTHING = { current: '', new: '', repeated: '' };

/** The own password and sessions of a person. */
function ProfilePage() {
  const [given, setGiven] = useState(NOTHING);
  const [isEnding, setEnding] = useState(false);
  const { run, isBusy, failure } = useAction();
  const { username, clientId } = viewer.value ?? {};
  if (!username || !clientId) return html`<${Page} title="My password and sessions"><${Empty} icon="person">An API client has no password.<//><//>`;
  const isRepeated = given.repeated === '' || given.repeated === given.new;
  const submit = (event: Event) => {
    event.preventDefault();
    if (!isRepeated) return;
    void run(async () => {
      resultOf((await ask(ChangeOwnPasswordDocument, { current: given.current, new: given.new })).result);
      // The change has ended all sessions, this one too.
      await signIn({ clientId, username, password: given.new });
      setGiven(NOTHING);
      toast('Password changed. Your other sessions have ended.');
    });
  };
  const end = async () => {
    resultOf((await ask(EndOwnSessionsDocument, {})).result);
    signOut('All your sessions have ended.');
  };
  const input = (name: keyof typeof given, label: string, more: object) =>
    html`<${Input} label=${label} type="password" required value=${given[name]} failure=${failure} path=${name} onInput=${(text: string) => setGiven({ ...given, [name]: text })} ...${more} />`;
  return html`<${Page} title="My password and sessions">
    <form class="card narrow" onSubmit=${submit}><h2>Change the password</h2>
      ${input('current', 'Current password', { autocomplete: 'current-password' })}
      ${input('new', 'New password', { autocomplete: 'new-password', hint: 'At least 8 characters' })}
      ${input('repeated', 'New password again', { autocomplete: 'new-password', issue: isRepeated ? undefined : 'It differs from the new password.' })}
      <${FailureBox} failure=${failure} />
      <p class="actions end"><button type="submit" class="primary" disabled=${isBusy || !isRepeated}>Change the password</button></p>
    </form>
    <section class="card narrow"><h2>Sessions</h2>
      <p>If you have signed in somewhere and left it open, or somebody may know your session, end all of them, this one too.</p>
      <p class="actions end"><button type="button" class="danger" onClick=${() => setEnding(true)}>End all my sessions</button></p>
    </section>
    ${isEnding && html`<${Confirm} title="End all your sessions?" verb="End all my sessions" act=${end} onClose=${() => setEnding(false)}><p>You are signed out everywhere.</p><//>`}
  <//>`;
}
