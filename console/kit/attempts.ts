import { ask } from '../api.ts';
import { AuditRecordsDocument, type AuditRecordsQuery } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { linkTo } from '../router.ts';
import { nodesOf } from './list.ts';
import { useAsk } from './page.ts';
import { clock, counted } from './text.ts';

const DAY_MS = 24 * 3_600_000;
const READ = 100;

type AuditRecord = AuditRecordsQuery['auditRecords']['edges'][number]['node'];

/** The wrong passwords of a person within the last day, up to a hundred, and when the last lock that they have caused ends or has ended. */
type Attempts = NonNullable<Awaited<ReturnType<typeof attemptsAt>>>;

/** What the server notes with the headers of a refused request. */
const noted = ({ headers }: AuditRecord) => headers as { ':reason'?: string; ':locked-until'?: string } | null;

/** Returns what the audit attributes to a person: wrong passwords at the console and at the token endpoint within the last day; undefined without any. */
async function attemptsAt({ subject }: { subject: string }) {
  const since = new Date(Date.now() - DAY_MS).toISOString();
  const refused = nodesOf((await ask(AuditRecordsDocument, { filter: { subject, since, statusClass: 4 }, first: READ })).auditRecords);
  const wrong = refused.filter((record) => noted(record)?.[':reason'] === 'wrong_password');
  const first = wrong.at(-1);
  if (!first) return undefined;
  const locks = refused.flatMap((record) => noted(record)?.[':locked-until'] ?? []);
  return { count: wrong.length, since: first.at, addresses: [...new Set(wrong.map(({ realIp }) => realIp))].reverse(), lockedUntil: locks.sort().at(-1) };
}

/** Asks for the wrong passwords of a person within the last day, where one may read the audit. */
export const useAttempts = (subject: string | undefined, turn?: number) => useAsk(attemptsAt, subject === undefined ? undefined : { subject }, turn);

/** `5 wrong since 06:57 from 192.0.2.7`, with a link to the records. */
export function AttemptsLine({ subject, of: { count, since, addresses } }: { subject: string; of: Attempts }) {
  const [first = '', ...others] = addresses;
  const from = others.length === 0 ? first : `${addresses.length} addresses, first ${first}`;
  return html`<a href=${linkTo(['audit'], { subject, status: '4', since })}>${counted(count, 'wrong password')} since ${clock(since)} from ${from}</a>`;
}
