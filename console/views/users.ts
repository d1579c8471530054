import { mutate } from '../api.ts';
import { EraseUserDocument, type UserPartsFragment as User, UserDocument, UsersDocument } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Activity } from '../kit/activity.ts';
import { Input } from '../kit/form.ts';
import { type Column, factsOf, Listing, saveFile } from '../kit/list.ts';
import { ConfirmButton, toast } from '../kit/overlay.ts';
import { Empty, Found, may, Needs, Page, useAsk, useSettled } from '../kit/page.ts';
import { UUID, useName } from '../kit/picker.ts';
import { actors } from '../kit/sources.ts';
import { Badge, Copy, counted, Facts, Id, Time } from '../kit/text.ts';
import { NoTransactions } from '../kit/transactions.ts';
import { go, linkTo, place, setQuery } from '../router.ts';
import { viewer } from '../session.ts';

function nameOf({ name, surname, email, externalId, erasedAt }: User): string {
  return `${name} ${surname}`.trim() || email || externalId || (erasedAt ? 'Erased user' : 'User without a name');
}

const COLUMNS: readonly Column<User>[] = [
  { title: 'Name', cell: (user) => html`<a href=${linkTo(['users', user.id])}>${nameOf(user)}</a> ${user.erasedAt && html`<${Badge}>Erased<//>`}` },
  { title: 'Email', cell: ({ email }) => email },
  { title: 'External id', cell: ({ externalId }) => externalId },
  { title: 'Wallet address', cell: ({ address }) => address && html`<${Id} id=${address} />` },
  { title: 'KYC', cell: ({ kyc }) => (kyc ? html`<${Badge} tone="good">Verified<//>` : 'Not verified') },
  { title: 'Migrated', cell: ({ createdAt }) => html`<${Time} at=${createdAt} />` },
];

export const show = (id?: string) => (id === undefined ? html`<${UsersPage} />` : html`<${UserPage} key=${id} id=${id} />`);

/** The users of the tenant; an id that is pasted into the search leads to its user. */
function UsersPage() {
  const search = place.value.query.get('search') ?? '';
  const variables = useSettled({ filter: { search: search.trim() || null } });
  const find = (text: string) => (UUID.test(text.trim()) ? go(linkTo(['users', text.trim()])) : setQuery({ search: text }));
  const link = may('users:migrate') && html`<a class="button" href=${linkTo(['migrations', 'new'])}>Import users</a>`;
  return html`<${Page} title="Users" actions=${link}>
    <form class="filters" onSubmit=${(event: Event) => event.preventDefault()}>
      <${Input} label="Search" type="search" maxlength="1000" placeholder="Name, email, external id, wallet or id" value=${search} onInput=${find} />
    </form>
    <${Listing} label="Users" operation=${UsersDocument} columns=${COLUMNS} linkOf=${({ id }: User) => linkTo(['users', id])} variables=${variables}
      empty=${search ? 'No user matches.' : html`<${Empty} icon="users" next=${link}>No users yet. Import them from a spreadsheet.<//>`} />
  <//>`;
}

function UserPage({ id }: { id: string }) {
  const asked = useAsk(UserDocument, { id });
  const user = asked.data?.user;
  const erase = async () => {
    await mutate(EraseUserDocument, { id });
    asked.reload();
    toast('User erased. The receipt proves it: save it.');
  };
  const name = user ? nameOf(user) : 'User';
  const actions =
    may('users:erase') &&
    user?.erasedAt === null &&
    html`<${ConfirmButton} title=${`Erase ${name}?`} verb="Erase user" act=${erase}>
      <p>${[user.email, user.externalId, id].filter(Boolean).join(' · ')}</p>
      <p>The name, email, external id and wallet address are removed from the user, from migrations, and from audit records and stored responses.</p>
      <p>This cannot be undone.</p><//>`;
  return html`<${Page} title=${name} trail=${[{ text: 'Users', link: linkTo(['users']) }]} actions=${actions}>
    <${Found} asked=${asked} noun="user">${(user: User) => html`
      ${user.erasedAt ? html`<${Receipt} ...${user} />` : html`<${Needs} permission="users:erase" to="erase users" />`}
      <${Facts} of=${[...factsOf(COLUMNS.slice(1), user), ['Id', html`<${Id} id=${id} />`]]} />
      <${NoTransactions} of="user" />
      <${Activity} of="user" id=${id} round=${Date.parse(user.erasedAt ?? '') || 0} />`}<//>
  <//>`;
}

function Receipt({ id, erasedAt, erasure }: User) {
  const migrations = erasure?.migrations ?? [];
  const imports = migrations.length > 0 ? `, ${counted(migrations.length, 'import')}` : '';
  const removed = erasure && ` Removed from ${counted(erasure.records, 'audit record')}${imports} and ${counted(erasure.responses, 'stored response')}.`;
  const by = erasure?.by ?? '';
  const name = useName(actors, by);
  const { tenantName, nodeId } = viewer.value ?? {};
  const facts = {
    tenant: tenantName ?? nodeId,
    user: id,
    erased_at: erasedAt,
    erased_by: by,
    erased_by_name: name,
    audit_records: erasure?.records,
    stored_responses: erasure?.responses,
    migrations,
    seal: erasure?.seal,
  };
  const save = () => saveFile(new Blob([`${JSON.stringify(facts, null, 2)}\n`], { type: 'application/json' }), `erasure-${id}.json`);
  // An erasure waits for records that are on their way.
  const [since, until] = [-60_000, 600_000].map((ms) => new Date(Date.parse(erasedAt ?? '') + ms).toISOString());
  return html`<section class="card" aria-label="Receipt"><h2>Personal data erased</h2>
    <p>Erased on <${Time} at=${erasedAt} isAbsolute />${by && ` by ${name ?? by}`}.${removed} The id and the KYC status are kept.</p>
    ${migrations.length > 0 && html`<p>Imports: ${migrations.map((one) => html`<${Id} id=${one} link=${linkTo(['migrations', one])} /> `)}</p>`}
    ${erasure?.seal && html`<p class="muted">The saved receipt has the seal of the audit${erasure.seal.signature ? ', which is signed' : ''}.</p>`}
    <p class="actions"><${Copy} text=${`Erased user ${id} at ${erasedAt}${by && ` by ${by}`}.${removed ?? ''}`} label="Copy receipt" /> <button type="button" onClick=${save}>Save receipt</button>
      ${may('audit:read') && html`<a href=${linkTo(['audit'], { operation: 'eraseUser' })}>Erasures in the audit</a> <a href=${linkTo(['audit'], { operation: 'eraseUser', since, until, exports: 'shown' })}>Export its record</a>`}</p></section>`;
}
