import { ask } from '../api.ts';
import { AuditRecordsDocument, type AuditRecordsQuery } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { linkTo } from '../router.ts';
import { nodesOf } from './list.ts';
import { useAsk } from './page.ts';
import { clock, counted } from './text.ts';

const DAY_MS = 24 * 3_600_000;
/** This many wrong passwords of an address within this time lock the name for that address. */
const TO_LOCK = 5;
const WINDOW_MS = 15 * 60_000;
const READ = 100;

type AuditRecord = AuditRecordsQuery['auditRecords']['edges'][number]['node'];

/** The wrong passwords of a person within the last day. */
export interface Attempts {
  /** How many there are, up to a hundred. */
  count: number;
  since: string;
  addresses: readonly string[];
  /** When the last lock that they have caused ends or has ended. */
  lockedUntil: string | undefined;
}

const reasonOf = ({ headers }: AuditRecord) => (headers as Record<string, unknown> | null)?.[':reason'];

/** Returns the end of the last lock by these attempts, which are in the order of their times. */
function lockOf(attempts: readonly AuditRecord[]): string | undefined {
  const ends = [...Map.groupBy(attempts, ({ realIp }) => realIp).values()].flatMap((of) =>
    of.flatMap(({ at }, last) => {
      const first = of[last - TO_LOCK + 1];
      return first && Date.parse(at) - Date.parse(first.at) < WINDOW_MS ? [new Date(Date.parse(at) + WINDOW_MS).toISOString()] : [];
    }),
  );
  return ends.sort().at(-1);
}

/** Returns what the audit attributes to a person: wrong passwords at the console and at the token endpoint within the last day; undefined without any. */
async function attemptsAt({ subject }: { subject: string }): Promise<Attempts | undefined> {
  const since = new Date(Date.now() - DAY_MS).toISOString();
  const { auditRecords } = await ask(AuditRecordsDocument, { filter: { subject, since, statusClass: 4 }, first: READ });
  const wrong = nodesOf(auditRecords)
    .filter((record) => reasonOf(record) === 'wrong_password')
    .reverse();
  const [first] = wrong;
  if (!first) return undefined;
  return { count: wrong.length, since: first.at, addresses: [...new Set(wrong.map(({ realIp }) => realIp))], lockedUntil: lockOf(wrong) };
}

/** Asks for the wrong passwords of a person within the last day, where one may read the audit. */
export const useAttempts = (subject: string | undefined, turn?: number) => useAsk(attemptsAt, subject === undefined ? undefined : { subject }, turn);

/** `5 wrong since 06:57 from 192.0.2.7`, with a link to the records. */
export function AttemptsLine({ subject, of: { count, since, addresses } }: { subject: string; of: Attempts }) {
  const [first = '', ...others] = addresses;
  const from = others.length === 0 ? first : `${addresses.length} addresses, first ${first}`;
  return html`<a href=${linkTo(['audit'], { subject, status: '4', since })}>${counted(count, 'wrong password')} since ${clock(since)} from ${from}</a>`;
}
