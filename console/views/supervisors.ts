import { useState } from 'preact/hooks';
import { ask, resultOf } from '../api.ts';
import {
  CreateSupervisorDocument,
  RevokeSessionsDocument,
  SetSupervisorPasswordDocument,
  SetSupervisorRoleDocument,
  SetSupervisorStatusDocument,
  type SupervisorPartsFragment as Supervisor,
  SupervisorsDocument,
  type SupervisorsQuery,
  UnlockSupervisorDocument,
} from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Input, Select } from '../kit/form.ts';
import { type Column, List, usePages } from '../kit/list.ts';
import { Confirm, Sheet, toast } from '../kit/overlay.ts';
import { Answer, Empty, FailureBox, Page, useAction } from '../kit/page.ts';
import { Badge, Facts, Time } from '../kit/text.ts';
import { viewer } from '../session.ts';

const ROLES = [
  ['viewer', 'Viewer: reads'],
  ['operator', 'Operator: reads and changes'],
  ['admin', 'Admin: also clients, supervisors, audit and erasure'],
] as const;
const PASSWORD_HINT = 'At least 8 characters. The person can change it after signing in.';

const nameOfRole = (role: string) => role.charAt(0).toUpperCase() + role.slice(1);

function Status({ status, lockedUntil }: Supervisor) {
  const isActive = status === 'ACTIVE';
  return html`<${Badge} tone=${isActive ? 'good' : ''}>${isActive ? 'Active' : 'Disabled'}<//>
    ${lockedUntil && html` <${Badge} tone="bad">Locked<//>`}`;
}

export function show(id?: string) {
  return id === undefined ? html`<${SupervisorsPage} />` : undefined;
}

/** The people of the tenant who may log in, and a sheet for one of them. */
function SupervisorsPage() {
  const asked = usePages(SupervisorsDocument, {});
  const [opened, setOpened] = useState<Supervisor | 'new'>();
  const changed = (text: string, now?: Supervisor) => {
    toast(text);
    setOpened(now);
    asked.reload();
  };
  const columns: Column<Supervisor>[] = [
    { title: 'Username', cell: (row) => html`<button type="button" class="plain" onClick=${() => setOpened(row)}>${row.username}</button>` },
    { title: 'Role', cell: ({ role }) => nameOfRole(role) },
    { title: 'Status', cell: (row) => html`<${Status} ...${row} />` },
    { title: 'Created', cell: ({ createdAt }) => html`<${Time} at=${createdAt} />` },
  ];
  const add = html`<button type="button" class="primary" onClick=${() => setOpened('new')}>New supervisor</button>`;
  const empty = html`<${Empty} icon="supervisors" next=${add}>No supervisors yet.<//>`;
  return html`<${Page} title="Supervisors" actions=${add}>
    <${Answer} asked=${asked}>${({ supervisors }: SupervisorsQuery) =>
      html`<${List} label="Supervisors" of=${supervisors} pages=${asked.pages} columns=${columns} keyOf=${({ id }: Supervisor) => id} onOpen=${setOpened} empty=${empty} />`}<//>
    ${
      opened &&
      html`<${Sheet} key=${opened === 'new' ? '' : opened.id} title=${opened === 'new' ? 'New supervisor' : opened.username} onClose=${() => setOpened(undefined)}>${
        opened === 'new' ? html`<${NewSupervisor} onMade=${changed} />` : html`<${SupervisorSheet} of=${opened} onChanged=${changed} />`
      }<//>`
    }
  <//>`;
}

type Changed = (text: string, now?: Supervisor) => void;

function NewSupervisor({ onMade }: { onMade: Changed }) {
  const [given, setGiven] = useState({ username: '', password: '', role: 'operator' });
  const { run, isBusy, failure } = useAction();
  const input = (name: 'username' | 'password', label: string, more: object) =>
    html`<${Input} label=${label} required value=${given[name]} failure=${failure} path=${name} onInput=${(text: string) => setGiven({ ...given, [name]: text })} ...${more} />`;
  const submit = (event: Event) => {
    event.preventDefault();
    void run(async () => {
      const made = resultOf((await ask(CreateSupervisorDocument, { input: given })).result);
      onMade(`${made.username} created.`);
    });
  };
  return html`<form class="stack" onSubmit=${submit}>
    ${input('username', 'Username', { maxlength: 255 })}
    ${input('password', 'First password', { type: 'password', autocomplete: 'new-password', hint: PASSWORD_HINT })}
    <${Select} label="Role" value=${given.role} options=${ROLES} onChange=${(role: string) => setGiven({ ...given, role })} />
    <${FailureBox} failure=${failure} />
    <p class="actions end"><button type="submit" class="primary" disabled=${isBusy}>Create the supervisor</button></p>
  </form>`;
}

/** What can be changed of a supervisor. */
function SupervisorSheet({ of, onChanged }: { of: Supervisor; onChanged: Changed }) {
  const { id, username, status, lockedUntil } = of;
  const [role, setRole] = useState(of.role);
  const [password, setPassword] = useState('');
  const [asks, setAsks] = useState<'disable' | 'sessions'>();
  const { run, isBusy, failure } = useAction();
  const isSelf = username === viewer.value?.username;
  const act = async (text: string, result: Promise<{ result: Parameters<typeof resultOf>[0] }>) =>
    onChanged(text, resultOf((await result).result) as Supervisor);
  const enable = () => act(`${username} is active.`, ask(SetSupervisorStatusDocument, { id, status: 'ACTIVE' }));
  const disable = () => act(`${username} is disabled.`, ask(SetSupervisorStatusDocument, { id, status: 'DISABLED' }));
  const button = (text: string, name: string, isEnabled: boolean, work: () => Promise<unknown>) =>
    html`<button type="button" class=${name} disabled=${isBusy || !isEnabled} onClick=${() => run(work)}>${text}</button>`;
  return html`<${Facts} of=${[
    ['Status', html`<${Status} ...${of} />`],
    ['Locked until', lockedUntil && html`<${Time} at=${lockedUntil} isAbsolute />`],
    ['Created', html`<${Time} at=${of.createdAt} />`],
  ]} />
    ${lockedUntil && html`<p class="actions">${button('Unlock', 'primary', true, () => act(`${username} is unlocked.`, ask(UnlockSupervisorDocument, { id })))}<span class="muted">Too many wrong passwords.</span></p>`}
    <div class="stack">
      <${Select} label="Role" value=${role} options=${ROLES} onChange=${setRole} />
      <p class="actions end">${button('Change the role', '', role !== of.role, () => act(`${username} is ${role} now.`, ask(SetSupervisorRoleDocument, { id, role })))}</p>
      <${Input} label="New password" type="password" autocomplete="new-password" hint=${PASSWORD_HINT} value=${password} failure=${failure} path="password" onInput=${setPassword} />
      <p class="actions end">${button('Set the password', '', password !== '', () => act(`The password of ${username} is set.`, ask(SetSupervisorPasswordDocument, { id, password })))}</p>
    </div>
    <p class="muted">A change of the role or the password ends ${isSelf ? 'your sessions, this one too' : `the sessions of ${username}`}.</p>
    <${FailureBox} failure=${failure} />
    <p class="actions end"><button type="button" onClick=${() => setAsks('sessions')}>End the sessions</button>
      ${status === 'ACTIVE' ? html`<button type="button" class="danger" onClick=${() => setAsks('disable')}>Disable the supervisor</button>` : button('Enable the supervisor', '', true, enable)}</p>
    ${
      asks === 'disable' &&
      html`<${Confirm} title=${`Disable ${username}?`} verb="Disable the supervisor" act=${disable} onClose=${() => setAsks(undefined)}>
        <p>All sessions end now, and ${username} cannot sign in until enabled.</p><//>`
    }
    ${
      asks === 'sessions' &&
      html`<${Confirm} title=${`End the sessions of ${username}?`} verb="End the sessions" act=${() => act(`The sessions of ${username} have ended.`, ask(RevokeSessionsDocument, { id }))} onClose=${() => setAsks(undefined)}>
        <p>${username} is signed out everywhere, and may sign in again.</p><//>`
    }`;
}
