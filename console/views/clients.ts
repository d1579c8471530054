import { useState } from 'preact/hooks';
import { mutate } from '../api.ts';
import type { ClientPartsFragment as Client, ClientInput, GrantType } from '../generated/graphql.ts';
import { ClientsDocument, CreateClientDocument, RotateClientSecretDocument, SetClientStatusDocument, UpdateClientDocument } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Activity } from '../kit/activity.ts';
import { Check, Form, Input, Select } from '../kit/form.ts';
import { type Column, factsOf } from '../kit/list.ts';
import { ConfirmButton } from '../kit/overlay.ts';
import { FailureBox, may, useAction } from '../kit/page.ts';
import { type Done, Register } from '../kit/register.ts';
import { Badge, Copy, counted, Facts, Id, Time, words } from '../kit/text.ts';
import { linkTo, place } from '../router.ts';
import { viewer } from '../session.ts';

const GRANTS: Readonly<Record<GrantType, string>> = {
  CLIENT_CREDENTIALS: 'Its own tokens (client credentials)',
  PASSWORD: 'Logins of supervisors (password)',
  REFRESH_TOKEN: 'Renewal of tokens (refresh token)',
};
const OVERLAPS = Object.entries({ 0: 'Now', 3600: 'In 1 hour', 86400: 'In 1 day' });
const KINDS = Object.entries({ false: 'An integration, with a secret', true: 'People at the console, without a secret' });
const RATES = ['requestsPerSecond', 'requestsPerMinute', 'requestsPerHour'] as const;

const COLUMNS: readonly Column<Client>[] = [
  { title: 'Kind', cell: ({ isConsole, grantTypes }) => (isConsole ? 'Console' : grantTypes.includes('CLIENT_CREDENTIALS') ? 'Integration' : 'Logins') },
  { title: 'Permissions', cell: ({ isConsole, scopes }) => (isConsole ? "The person's" : counted(scopes.length, 'permission')) },
  { title: 'Last used', cell: ({ lastUsedAt, isConsole }) => (lastUsedAt ? html`<${Time} at=${lastUsedAt} />` : isConsole ? 'By sign-ins' : 'Never') },
  { title: 'Status', cell: ({ status }) => html`<${Badge} tone=${status === 'ACTIVE' ? 'good' : ''}>${words(status)}<//>` },
  { title: 'Id', cell: ({ id }) => html`<${Id} id=${id} />` },
];

/** The permissions by what they allow. */
const SCOPES = [
  ['read', (name: string) => name.endsWith(':read')],
  ['write', (name: string) => !name.endsWith(':read')],
] as const;

/** A client, with its secret while that is shown. */
type Shown = Client & { secret?: string };

export function show(id?: string) {
  const sheet = (client: Shown | undefined, done: Done<Shown>) =>
    client ? html`<${ClientSheet} client=${client} done=${done} />` : html`<${ClientForm} done=${done} />`;
  return html`<${Register} id=${id} title="Clients" noun="client" icon="clients" empty="No clients yet. An integration needs one to get tokens."
    operation=${ClientsDocument} nameOf=${({ name }: Client) => name} columns=${COLUMNS} sheet=${sheet} />`;
}

function ClientSheet({ client, done }: { client: Shown; done: Done<Shown> }) {
  const { id, name, status, createdAt, isConsole, previousSecretExpiresAt: until } = client;
  const [overlap, setOverlap] = useState('3600');
  const { run, isBusy, failure } = useAction();
  const rotate = async () => {
    const { client: rotated, clientSecret: secret } = await mutate(RotateClientSecretDocument, { id, overlapSeconds: Number(overlap) });
    done(`The secret of ${name} is rotated.`, { ...rotated, secret });
  };
  const disable = async () => done(`${name} is disabled.`, await mutate(SetClientStatusDocument, { id, status: 'DISABLED' }));
  const enable = async () => done(`${name} is active.`, await mutate(SetClientStatusDocument, { id, status: 'ACTIVE' }));
  return html`<${Facts} of=${[
    ...factsOf(COLUMNS, client),
    ['Created', html`<${Time} at=${createdAt} />`],
    ['Audit', may('audit:read') && html`<a href=${linkTo(['audit'], { clientId: id })}>Its requests</a>`],
    ['The old secret works until', until && html`<${Time} at=${until} isAbsolute />`],
    ['Link for people', isConsole ? html`<${Copy} text=${new URL(`?client=${id}`, document.baseURI).href} label="Copy the link" />` : ''],
  ]} />
    <${FailureBox} failure=${failure} /><p class="actions">
    ${
      !isConsole &&
      html`<${ConfirmButton} title=${`Rotate the secret of ${name}?`} verb="Rotate the secret" isAsked=${place.value.query.get('do') === 'rotate'} isHarmless=${overlap !== '0'} act=${rotate}>
        <p>The client gets another secret, which is shown once.</p>
        <${Select} label="The current secret stops working" value=${overlap} options=${OVERLAPS} onChange=${setOverlap} /><//>`
    }
    ${
      status === 'ACTIVE'
        ? html`<${ConfirmButton} title=${`Disable ${name}?`} verb="Disable the client" act=${disable}>
          <p>Its tokens, and all sessions of people who signed in through it, end now. Enabling it later does not bring them back.</p><//>`
        : html`<button type="button" disabled=${isBusy} onClick=${() => run(enable)}>Enable the client</button>`
    }</p>
    <h2>Settings</h2><${ClientForm} client=${client} done=${done} />
    <${Activity} of="client" id=${id} />`;
}

const NEW = {
  name: '',
  isConsole: false,
  grantTypes: ['CLIENT_CREDENTIALS', 'REFRESH_TOKEN'],
  scopes: [],
  tokenExpiry: { enabled: true, duration: 3600 },
} satisfies ClientInput;

const inputOf = ({ id: _i, status: _s, lastUsedAt: _l, createdAt: _c, previousSecretExpiresAt: _p, secret: _x, ...input }: Shown): ClientInput => input;

function ClientForm({ client, done }: { client?: Shown; done: Done<Shown> }) {
  const [draft, setDraft] = useState<ClientInput>(client ? inputOf(client) : NEW);
  const [addresses, setAddresses] = useState(client?.allowedIps.join(', ') ?? '');
  const action = useAction();
  const expiry = draft.tokenExpiry ?? NEW.tokenExpiry;
  const permissions = [...new Set([...(viewer.value?.permissions ?? []), ...draft.scopes])];
  const put = (part: Partial<ClientInput>) => setDraft({ ...draft, ...part });
  const save = async () => {
    const { name, scopes, isConsole } = draft;
    const input = isConsole ? { ...NEW, name, scopes, isConsole } : { ...draft, allowedIps: addresses.split(/[\s,]+/).filter(Boolean) };
    if (client) return done(`${name} saved.`, await mutate(UpdateClientDocument, { id: client.id, input }));
    const { client: made, clientSecret: secret } = await mutate(CreateClientDocument, { input });
    return done(`${name} created.`, { ...made, secret });
  };
  const text = (path: string, label: string, value: string, onInput: (text: string) => void, more: object = {}) =>
    html`<${Input} label=${label} value=${value} failure=${action.failure} path=${path} onInput=${onInput} ...${more} />`;
  const number = (path: string, label: string, value: number | null | undefined, take: (value: number | null) => Partial<ClientInput>) =>
    text(path, label, String(value || ''), (typed) => put(take(Number(typed) || null)), { type: 'number', min: 1, required: path === 'tokenExpiry.duration' });
  const flag = (name: 'requireCertificate' | 'refreshReuseDetection', label: string) =>
    html`<${Check} label=${label} checked=${draft[name] ?? false} onChange=${(value: boolean) => put({ [name]: value })} />`;
  const oneOf = (member: 'grantTypes' | 'scopes', name: string, label: unknown) => {
    const names = new Set<string>(draft[member]);
    const toggle = () => put({ [member]: names.delete(name) ? [...names] : [...names, name] });
    return html`<${Check} label=${label} checked=${names.has(name)} onChange=${toggle} />`;
  };
  return html`<${Form} ...${action} verb=${client ? 'Save' : 'Create the client'} act=${save}>
    ${text('name', 'Name', draft.name, (name) => put({ name }), { required: true, maxlength: 255 })}
    ${!client && html`<${Select} label="For" value=${String(draft.isConsole)} options=${KINDS} onChange=${(value: string) => put({ isConsole: value === 'true' })} />`}
    ${
      !draft.isConsole &&
      html`<fieldset><legend>May get</legend>${Object.entries(GRANTS).map(([grant, label]) => oneOf('grantTypes', grant, label))}</fieldset>
      ${SCOPES.map(([title, isOf]) => html`<fieldset><legend>Tokens of the client itself may ${title}</legend>${permissions.filter(isOf).map((name) => oneOf('scopes', name, html`<code>${name}</code>`))}</fieldset>`)}
      <details><summary>Tokens, addresses and limits</summary><div class="stack">
        <${Check} label="Tokens expire" checked=${expiry.enabled} onChange=${(enabled: boolean) => put({ tokenExpiry: { ...expiry, enabled } })} />
        ${number('tokenExpiry.duration', 'Lifetime of its tokens in seconds', expiry.duration, (value) => ({ tokenExpiry: { ...expiry, duration: value ?? 0 } }))}
        ${flag('refreshReuseDetection', 'End a session when a refresh token is used twice')}
        ${text('allowedIps', 'Addresses that it may call from', addresses, setAddresses, { hint: 'IP addresses and networks such as 192.0.2.0/24; empty means any' })}
        ${flag('requireCertificate', 'Require a client certificate')}
        ${text('certFingerprint', 'Fingerprint of the certificate', draft.certFingerprint ?? '', (typed) => put({ certFingerprint: typed || null }))}
        ${RATES.map((name) => number(`rateLimit.${name}`, words(name), draft.rateLimit?.[name], (limit) => ({ rateLimit: { ...draft.rateLimit, [name]: limit } })))}
        ${number('monthlyLimit', 'Requests per calendar month', draft.monthlyLimit, (monthlyLimit) => ({ monthlyLimit }))}
      </div></details>`
    }<//>`;
}
