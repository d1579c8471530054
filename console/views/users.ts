import { useState } from 'preact/hooks';
import { ask, resultOf } from '../api.ts';
import {
  EraseUserDocument,
  type EraseUserMutation,
  type UserPartsFragment as User,
  UserDocument,
  UsersDocument,
  type UsersQuery,
} from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Input } from '../kit/form.ts';
import { type Column, List, usePages } from '../kit/list.ts';
import { Confirm, toast } from '../kit/overlay.ts';
import { Answer, Empty, may, Needs, Page, useAsk } from '../kit/page.ts';
import { absolute, Badge, Copy, counted, Facts, Id, Time } from '../kit/text.ts';
import { go, linkTo, place } from '../router.ts';

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** Returns what a user is called. */
function nameOf({ name, surname, email, externalId, erasedAt }: User): string {
  return `${name} ${surname}`.trim() || email || externalId || (erasedAt ? 'Erased user' : 'User without a name');
}

const COLUMNS: readonly Column<User>[] = [
  { title: 'Name', cell: (user) => html`<a href=${linkTo(['users', user.id])}>${nameOf(user)}</a> ${user.erasedAt && html`<${Badge}>Erased<//>`}` },
  { title: 'Email', cell: ({ email }) => email },
  { title: 'External id', cell: ({ externalId }) => externalId },
  { title: 'Wallet address', cell: ({ address }) => html`<${Id} id=${address} />` },
  { title: 'KYC', cell: ({ kyc }) => (kyc ? html`<${Badge} tone="good">Verified<//>` : 'Not verified') },
  { title: 'Migrated', cell: ({ createdAt }) => html`<${Time} at=${createdAt} />` },
];

export function show(id?: string) {
  return id === undefined ? html`<${UsersPage} />` : html`<${UserPage} key=${id} id=${id} />`;
}

/** The users of the tenant; an id that is pasted into the search leads to its user. */
function UsersPage() {
  const search = place.value.query.get('search') ?? '';
  const asked = usePages(UsersDocument, { filter: { search: search.trim() || null } });
  const find = (text: string) => (UUID.test(text.trim()) ? go(linkTo(['users', text.trim()])) : go(linkTo(['users'], { search: text }), { replaces: true }));
  const link = may('users:migrate') && html`<a class="button" href=${linkTo(['migrations', 'new'])}>Import users</a>`;
  return html`<${Page} title="Users" actions=${link}>
    <form class="filters" onSubmit=${(event: Event) => event.preventDefault()}>
      <${Input} label="Search" type="search" maxlength="1000" placeholder="Name, email, external id, wallet or id" value=${search} onInput=${find} />
    </form>
    <${Answer} asked=${asked}>${({ users }: UsersQuery) =>
      html`<${List} label="Users" of=${users} pages=${asked.pages} columns=${COLUMNS} keyOf=${({ id }: User) => id} linkOf=${({ id }: User) => linkTo(['users', id])}
        empty=${search ? 'No user matches.' : html`<${Empty} icon="users" action=${link}>No users yet. Import them from a spreadsheet.<//>`} />`}<//>
  <//>`;
}

type Erased = Exclude<EraseUserMutation['result'], { message: string }>;

/** One user, the erasure of the personal data, and its receipt. */
function UserPage({ id }: { id: string }) {
  const asked = useAsk(UserDocument, { id });
  const [isAsking, setAsking] = useState(false);
  const [erased, setErased] = useState<Erased>();
  const user = asked.data?.user;
  const erase = async () => {
    const { result } = await ask(EraseUserDocument, { id });
    setErased(resultOf(result));
    asked.reload();
    toast('User erased.');
  };
  const mayErase = may('users:erase') && user && !user.erasedAt;
  const actions = mayErase && html`<button type="button" class="danger" onClick=${() => setAsking(true)}>Erase user</button>`;
  return html`<${Page} title=${user ? nameOf(user) : 'User'} trail=${[{ text: 'Users', link: linkTo(['users']) }]} actions=${actions}>
    <${Answer} asked=${asked}>${({ user }: NonNullable<typeof asked.data>) => {
      if (!user) return html`<${Empty}>There is no user with this id, or it belongs to another tenant.<//>`;
      const { externalId, email, address, kyc, createdAt, erasedAt } = user;
      const { records, responses } = erased?.erasure ?? {};
      const counts = records !== undefined && responses !== undefined && `${counted(records, 'audit record')} and ${counted(responses, 'stored response')}`;
      const receipt = `Erased user ${id} at ${erasedAt}${counts ? `: ${counts}` : ''}.`;
      return html`${
        erasedAt &&
        html`<section class="card" aria-label="Receipt"><h2>Personal data erased</h2>
        <p>Erased on <time datetime=${erasedAt}>${absolute(erasedAt)}</time>.${counts && ` Removed from ${counts}.`} The id and the KYC status are kept.</p>
        <p class="actions"><${Copy} text=${receipt} label="Copy receipt" /></p></section>`
      }
      <${Facts} of=${[
        ['Email', email],
        ['External id', externalId],
        ['Wallet address', address && html`<${Id} id=${address} />`],
        ['KYC', kyc ? 'Verified' : 'Not verified'],
        ['Migrated', html`<${Time} at=${createdAt} />`],
        ['Id', html`<${Id} id=${id} />`],
      ]} />
      ${!erasedAt && html`<${Needs} permission="users:erase" to="erase users" />`}
      ${
        isAsking &&
        html`<${Confirm} title=${`Erase ${nameOf(user)}?`} verb="Erase user" act=${erase} onClose=${() => setAsking(false)}>
        <p>The name, email, external id and wallet address of ${nameOf(user)} are removed from the user, from migrations, and from audit records and stored responses.</p>
        <p>This cannot be undone.</p><//>`
      }`;
    }}<//>
  <//>`;
}
