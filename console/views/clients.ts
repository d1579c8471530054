import { useState } from 'preact/hooks';
import { ask, resultOf } from '../api.ts';
import {
  type ClientPartsFragment as Client,
  type ClientInput,
  ClientsDocument,
  type ClientsQuery,
  CreateClientDocument,
  type GrantType,
  RotateClientSecretDocument,
  SetClientStatusDocument,
  UpdateClientDocument,
} from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Check, Input, Select } from '../kit/form.ts';
import { type Column, List, usePages } from '../kit/list.ts';
import { Confirm, SecretOnce, Sheet, toast } from '../kit/overlay.ts';
import { Answer, Empty, FailureBox, Page, useAction } from '../kit/page.ts';
import { Badge, Copy, counted, Facts, Id, Time } from '../kit/text.ts';
import { viewer } from '../session.ts';

const GRANTS: Readonly<Record<GrantType, string>> = {
  CLIENT_CREDENTIALS: 'Its own tokens (client credentials)',
  PASSWORD: 'Logins of supervisors (password)',
  REFRESH_TOKEN: 'Renewal of tokens (refresh token)',
};
const OVERLAPS = [
  ['0', 'Now'],
  ['3600', 'In 1 hour'],
  ['86400', 'In 1 day'],
] as const;

const KINDS = [
  ['false', 'An integration, with a secret'],
  ['true', 'People at the console, without a secret'],
] as const;

const kindOf = ({ isConsole, grantTypes }: Client) => (isConsole ? 'Console' : grantTypes.includes('CLIENT_CREDENTIALS') ? 'Integration' : 'Logins');

function Status({ status }: Pick<Client, 'status'>) {
  return html`<${Badge} tone=${status === 'ACTIVE' ? 'good' : ''}>${status === 'ACTIVE' ? 'Active' : 'Disabled'}<//>`;
}

export function show(id?: string) {
  return id === undefined ? html`<${ClientsPage} />` : undefined;
}

/** The clients of the tenant, and a sheet for one of them. */
function ClientsPage() {
  const asked = usePages(ClientsDocument, {});
  const [opened, setOpened] = useState<Client | 'new'>();
  const [asks, setAsks] = useState<'rotate' | 'disable'>();
  const [overlap, setOverlap] = useState('3600');
  const [secret, setSecret] = useState<{ of: string; id: string; value: string }>();
  const client = opened === 'new' ? undefined : opened;
  const changed = (text: string, now?: Client) => {
    toast(text);
    setOpened(now);
    asked.reload();
  };
  const columns: Column<Client>[] = [
    { title: 'Name', cell: (row) => html`<button type="button" class="plain" onClick=${() => setOpened(row)}>${row.name}</button>` },
    { title: 'Kind', cell: kindOf },
    { title: 'Permissions', cell: ({ isConsole, scopes }) => (isConsole ? "The person's" : counted(scopes.length, 'permission')) },
    {
      title: 'Last used',
      cell: ({ lastUsedAt, isConsole }) => (lastUsedAt ? html`<${Time} at=${lastUsedAt} />` : !isConsole && html`<span class="muted">Never</span>`),
    },
    { title: 'Status', cell: (row) => html`<${Status} ...${row} />` },
    { title: 'Id', cell: ({ id }) => html`<${Id} id=${id} />` },
  ];
  const add = html`<button type="button" class="primary" onClick=${() => setOpened('new')}>New client</button>`;
  const empty = html`<${Empty} icon="clients" next=${add}>No clients yet. An integration needs one to get tokens.<//>`;
  const rotate = async ({ id, name }: Client) => {
    const { clientSecret } = resultOf((await ask(RotateClientSecretDocument, { id, overlapSeconds: Number(overlap) })).result);
    setSecret({ of: name, id, value: clientSecret });
    setOpened(undefined);
  };
  const setStatus = async ({ id, name }: Client, status: Client['status']) => {
    const now = resultOf((await ask(SetClientStatusDocument, { id, status })).result);
    changed(`${name} is ${status === 'ACTIVE' ? 'active' : 'disabled'}.`, now);
  };
  const saved = (now: Client, value?: string) => {
    changed(value === undefined ? `${now.name} saved.` : `${now.name} created.`, value ? undefined : now);
    if (value) setSecret({ of: now.name, id: now.id, value });
  };
  return html`<${Page} title="Clients" actions=${add}>
    <${Answer} asked=${asked}>${({ clients }: ClientsQuery) =>
      html`<${List} label="Clients" of=${clients} pages=${asked.pages} columns=${columns} keyOf=${({ id }: Client) => id} onOpen=${setOpened} empty=${empty} />`}<//>
    ${
      opened &&
      html`<${Sheet} key=${client?.id} title=${client?.name ?? 'New client'} onClose=${() => setOpened(undefined)}>
      ${
        client &&
        html`<${Facts} of=${[
          ['Client id', html`<${Id} id=${client.id} />`],
          ['Status', html`<${Status} ...${client} />`],
          ['Created', html`<${Time} at=${client.createdAt} />`],
          ['Last used', client.lastUsedAt && html`<${Time} at=${client.lastUsedAt} />`],
          ['Link for people', client.isConsole && html`<${Copy} text=${new URL(`?client=${client.id}`, document.baseURI).href} label="Copy the link" />`],
        ]} />`
      }
      <${ClientForm} client=${client} onSaved=${saved} />
      ${
        client &&
        html`<p class="actions end">
        ${!client.isConsole && html`<button type="button" onClick=${() => setAsks('rotate')}>Rotate the secret</button>`}
        ${
          client.status === 'ACTIVE'
            ? html`<button type="button" class="danger" onClick=${() => setAsks('disable')}>Disable the client</button>`
            : html`<${Enable} act=${() => setStatus(client, 'ACTIVE')} />`
        }</p>`
      }<//>`
    }
    ${
      client &&
      asks === 'rotate' &&
      html`<${Confirm} title=${`Rotate the secret of ${client.name}?`} verb="Rotate the secret" isHarmless=${overlap !== '0'} act=${() => rotate(client)} onClose=${() => setAsks(undefined)}>
        <p>The client gets another secret, which is shown once.</p>
        <${Select} label="The present secret stops working" value=${overlap} options=${OVERLAPS} onChange=${setOverlap} /><//>`
    }
    ${
      client &&
      asks === 'disable' &&
      html`<${Confirm} title=${`Disable ${client.name}?`} verb="Disable the client" act=${() => setStatus(client, 'DISABLED')} onClose=${() => setAsks(undefined)}>
        <p>Its tokens, and all sessions of people who signed in through it, end now. Enabling it later does not bring them back.</p><//>`
    }
    ${
      secret &&
      html`<${SecretOnce} title=${`The secret of ${secret.of}`} secrets=${[
        ['Client id', secret.id],
        ['Client secret', secret.value],
      ]} onClose=${() => setSecret(undefined)} />`
    }
  <//>`;
}

function Enable({ act }: { act(): Promise<unknown> }) {
  const { run, isBusy, failure } = useAction();
  return html`<${FailureBox} failure=${failure} /><button type="button" disabled=${isBusy} onClick=${() => run(act)}>Enable the client</button>`;
}

/** The values of the form, as they are typed. */
function draftOf(client: Client | undefined) {
  const { requestsPerSecond, requestsPerMinute, requestsPerHour } = client?.rateLimit ?? {};
  const texts = { requestsPerSecond, requestsPerMinute, requestsPerHour, monthlyLimit: client?.monthlyLimit };
  return {
    name: client?.name ?? '',
    isConsole: client?.isConsole ?? false,
    grantTypes: client?.grantTypes ?? (['CLIENT_CREDENTIALS', 'REFRESH_TOKEN'] as GrantType[]),
    scopes: client?.scopes ?? [],
    expires: client?.tokenExpiry?.enabled ?? true,
    duration: String(client?.tokenExpiry?.duration ?? 3600),
    allowedIps: client?.allowedIps.join('\n') ?? '',
    requireCertificate: client?.requireCertificate ?? false,
    certFingerprint: client?.certFingerprint ?? '',
    refreshReuseDetection: client?.refreshReuseDetection ?? false,
    limits: Object.fromEntries(Object.entries(texts).map(([name, limit]) => [name, limit == null ? '' : String(limit)])) as Record<keyof typeof texts, string>,
  };
}

type Draft = ReturnType<typeof draftOf>;

function inputOfDraft({ limits, expires, duration, allowedIps, ...same }: Draft): ClientInput {
  const number = (text: string) => (text === '' ? null : Number(text));
  const { monthlyLimit, ...rates } = limits;
  if (same.isConsole) return { name: same.name, isConsole: true, grantTypes: ['PASSWORD', 'REFRESH_TOKEN'], scopes: same.scopes };
  return {
    ...same,
    certFingerprint: same.certFingerprint || null,
    tokenExpiry: { enabled: expires, duration: Number(duration) },
    allowedIps: allowedIps.split(/[\s,]+/).filter(Boolean),
    rateLimit: {
      requestsPerSecond: number(rates.requestsPerSecond),
      requestsPerMinute: number(rates.requestsPerMinute),
      requestsPerHour: number(rates.requestsPerHour),
    },
    monthlyLimit: number(monthlyLimit),
  };
}

/** Creates a client, or replaces one. */
function ClientForm({ client, onSaved }: { client: Client | undefined; onSaved(now: Client, secret?: string): void }) {
  const [draft, setDraft] = useState(() => draftOf(client));
  const { run, isBusy, failure } = useAction();
  const put = (part: Partial<Draft>) => setDraft({ ...draft, ...part });
  const toggled = <Name extends string>(names: readonly Name[], name: Name) =>
    names.includes(name) ? names.filter((each) => each !== name) : [...names, name];
  const permissions = [...new Set([...(viewer.value?.permissions ?? []), ...draft.scopes])];
  const submit = (event: Event) => {
    event.preventDefault();
    void run(async () => {
      const input = inputOfDraft(draft);
      if (client) return onSaved(resultOf((await ask(UpdateClientDocument, { id: client.id, input })).result));
      const made = resultOf((await ask(CreateClientDocument, { input })).result);
      return onSaved(made.client, made.clientSecret);
    });
  };
  const text = (name: 'name' | 'duration' | 'allowedIps' | 'certFingerprint', label: string, more: object = {}) =>
    html`<${Input} label=${label} value=${draft[name]} failure=${failure} path=${name} onInput=${(value: string) => put({ [name]: value })} ...${more} />`;
  const flag = (name: 'expires' | 'requireCertificate' | 'refreshReuseDetection', label: string) =>
    html`<${Check} label=${label} checked=${draft[name]} onChange=${(value: boolean) => put({ [name]: value })} />`;
  const oneOf = (member: 'grantTypes' | 'scopes', name: string, label: unknown) => {
    const names: readonly string[] = draft[member];
    return html`<${Check} label=${label} checked=${names.includes(name)} onChange=${() => put({ [member]: toggled(names, name) })} />`;
  };
  const limit = (name: keyof Draft['limits'], label: string) =>
    html`<${Input} label=${label} type="number" min="1" value=${draft.limits[name]} failure=${failure} path=${name === 'monthlyLimit' ? name : `rateLimit.${name}`}
      onInput=${(value: string) => put({ limits: { ...draft.limits, [name]: value } })} />`;
  return html`<form class="stack" onSubmit=${submit}>
    ${text('name', 'Name', { required: true, maxlength: 255 })}
    ${!client && html`<${Select} label="For" value=${String(draft.isConsole)} options=${KINDS} onChange=${(value: string) => put({ isConsole: value === 'true' })} />`}
    ${
      !draft.isConsole &&
      html`<fieldset><legend>May get</legend>${Object.entries(GRANTS).map(([grant, label]) => oneOf('grantTypes', grant, label))}</fieldset>
      <fieldset><legend>Permissions of its own tokens</legend>${permissions.map((name) => oneOf('scopes', name, html`<code>${name}</code>`))}</fieldset>
      <details><summary>Tokens, addresses and limits</summary><div class="stack">
        ${flag('expires', 'Tokens expire')}
        ${text('duration', 'Lifetime of its tokens in seconds', { type: 'number', min: 1, required: true, path: 'tokenExpiry.duration' })}
        ${flag('refreshReuseDetection', 'End a session when a refresh token is used twice')}
        ${text('allowedIps', 'Addresses that it may call from', { hint: 'IP addresses and networks such as 192.0.2.0/24; empty means any' })}
        ${flag('requireCertificate', 'Require a client certificate')}${text('certFingerprint', 'Fingerprint of the certificate')}
        ${limit('requestsPerSecond', 'Requests per second')}${limit('requestsPerMinute', 'Requests per minute')}
        ${limit('requestsPerHour', 'Requests per hour')}${limit('monthlyLimit', 'Requests per calendar month')}
      </div></details>`
    }
    <${FailureBox} failure=${failure} />
    <p class="actions end"><button type="submit" class="primary" disabled=${isBusy}>${client ? 'Save' : 'Create the client'}</button></p>
  </form>`;
}
