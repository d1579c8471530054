/** The work that waits behind something: how much, and how old the oldest is, in seconds. */
interface Waiting {
  messages: number;
  oldest_seconds: number;
}

/** What is known of an installation. A member is null if it cannot be read now. */
export interface StatusFacts {
  /**
   * The state of each part, and since when; null if nobody knows. `code` is that of the error: a SQLSTATE, a code of
   * Node, a reply of Redis.
   */
  parts: Readonly<Record<string, { state: string; since: string | null; code?: string | undefined }>>;
  lag: readonly (Waiting & { group: string; topic: string })[] | null;
  dead_letters: readonly (Waiting & { topic: string })[] | null;
  parked: (Waiting & { transactions: number; ids: readonly string[] }) | null;
  outbox: Waiting | null;
  /** When the last audit record was sealed, and the last complete verification. */
  audit: {
    checkpoint_at: string | null;
    verified: { at: string; seal: number; problems: number } | null;
  } | null;
  migrations: {
    /** The files of users that are being migrated, with the rows a second since the last look; null at the first. */
    running: readonly {
      id: string;
      rows: number;
      total: number | null;
      rate: number | null;
      remaining_seconds: number | null;
    }[];
    failed: readonly { id: string; at: string }[];
    /** Since when migrations wait although no worker works at any, if that is long; otherwise null. */
    stuck_since: string | null;
  } | null;
  /** Clients that have used most of their monthly limit. */
  quotas: readonly { client_id: string; used: number; limit: number }[] | null;
  /** The secrets of which a gateway does not accept the current value of another one. */
  differing_secrets: readonly string[] | null;
  /** The processes that have reported within the last minute. */
  processes:
    | readonly {
        id: string;
        host: string;
        role: string;
        version: string;
        since: string;
        seen_seconds: number;
        spool: { records: number; bytes: number; share: number };
        accounts_near: number;
      }[]
    | null;
}

/** Something about which a person must act. */
export interface Finding {
  what: string;
  since: string | null;
  /** Who is hit, and how. */
  hits: string;
  /** The page to read. */
  page: string;
  /** What to type. */
  type: string;
}

const HOUR_S = 3_600;
/** How long a consumer or the outbox may be behind. */
const BEHIND_S = 300;
const SPOOL_SHARE = 0.8;

/** What each kind of finding hits, the page to read, and what to type. */
const ABOUT = {
  database: {
    hits: 'all tenants: requests get 500, and nothing is applied',
    page: 'docs/operations/postgresql.md#the-database-is-down',
    type: 'psql "$DATABASE_URL" -c "select 1"',
  },
  cache: {
    hits: 'clients with limits: each process counts on its own; subscribers: events arrive late',
    page: 'docs/operations/redis.md#redis-is-down-or-rejects-commands',
    type: 'redis-cli -u "$REDIS_URL" set "$TOPIC_PREFIX"check 1 ex 1',
  },
  bus: {
    hits: 'the chain processor: its notifications get 500; all tenants: statuses do not change',
    page: 'docs/operations/kafka.md#the-bus-is-down',
    type: 'kafka-topics.sh --bootstrap-server "$KAFKA_BROKERS" --list',
  },
  audit: {
    hits: 'all callers of the process: every request gets 503 while its spool is full',
    page: 'docs/operations/audit.md#the-audit-spool-fills',
    type: 'df -h "$AUDIT_SPOOL_DIR"',
  },
  service: {
    hits: 'callers of the endpoints of that service: they get 503',
    page: 'docs/operations/remote-services.md#a-remote-service-is-down',
    type: 'portcullis audit list --status 503 --since 15m',
  },
  'gateway.yaml': {
    hits: 'no one yet: the previous routes are still in use, but a restart would exit with 78',
    page: 'docs/operations/gateway-file.md#gatewayyaml-was-refused',
    type: 'portcullis config check',
  },
  webhook: {
    hits: 'the chain processor: its notifications get 401; all tenants: statuses do not change',
    page: 'docs/operations/errors.md#the-webhook-rejects-notifications',
    type: 'portcullis audit list --status 401 --since 15m --path "/v2/webhooks*"',
  },
  secret: {
    hits: 'callers with a token or secret that another process has issued or stored: they get 401',
    page: 'docs/operations/secrets.md#credentials-are-refused-though-nothing-has-changed',
    type: 'portcullis config check',
  },
  worker: {
    hits: 'all tenants: statuses do not change, and imports do not go on',
    page: 'docs/operations/processes.md#a-process-is-down',
    type: 'PORTCULLIS_ROLE=worker portcullis start',
  },
  gateway: {
    hits: 'all callers: nobody is served',
    page: 'docs/operations/processes.md#a-process-is-down',
    type: 'PORTCULLIS_ROLE=gateway portcullis start',
  },
  lag: {
    hits: 'tenants whose messages wait: statuses and reference data are old',
    page: 'docs/operations/kafka.md#a-consumer-stands-still',
    type: 'portcullis status --watch',
  },
  outbox: {
    hits: 'services that read the KYC events of users',
    page: 'docs/operations/kafka.md#events-stay-in-the-outbox',
    type: 'portcullis status --watch',
  },
  dead: {
    hits: 'tenants whose message it is: it is not applied',
    page: 'docs/operations/kafka.md#there-are-dead-letters',
    type: 'portcullis dead-letters list',
  },
  parked: {
    hits: 'tenants whose transactions are not registered: they do not see them',
    page: 'docs/operations/unregistered-transactions.md#notifications-wait-for-registrations',
    type: 'portcullis status --json',
  },
  verification: {
    hits: 'whoever relies on the audit',
    page: 'docs/operations/audit-chain.md#after-a-finding',
    type: 'portcullis audit verify',
  },
  migration: {
    hits: 'the tenant that has imported the file: its remaining users are missing',
    page: 'docs/operations/user-files.md#the-migration',
    type: 'portcullis audit list --failed --since 1d --path "/v1/user-migrations*"',
  },
  stuck: {
    hits: 'tenants that have imported files: their users are missing',
    page: 'docs/operations/user-files.md#migrations-make-no-progress',
    type: 'psql "$DATABASE_URL" -c "select pid, usename, state, xact_start from pg_stat_activity order by xact_start"',
  },
} as const satisfies Record<string, Pick<Finding, 'hits' | 'page' | 'type'>>;

/** Returns what a person must act on, the most urgent first. */
export function findingsOf(facts: StatusFacts, nowMs: number): Finding[] {
  const { processes, lag, outbox, dead_letters: dead, parked, audit, migrations } = facts;
  const findings: Finding[] = [];
  const add = (kind: keyof typeof ABOUT, what: string, since: string | null) =>
    findings.push({ what, since, ...ABOUT[kind] });
  const addOld = (kind: keyof typeof ABOUT, what: string, waiting: Waiting | null, maxSeconds: number) => {
    if (!waiting || waiting.messages === 0 || waiting.oldest_seconds < maxSeconds) return;
    add(kind, `${waiting.messages} ${what}`, new Date(nowMs - waiting.oldest_seconds * 1_000).toISOString());
  };
  for (const [part, { state, since, code }] of Object.entries(facts.parts)) {
    // All remote services have one entry.
    const kind = part.split(' ', 1)[0] as keyof typeof ABOUT;
    if (state !== 'ok') add(kind, `${part} is ${state}${code === undefined ? '' : ` (${code})`}`, since);
  }
  for (const role of ['worker', 'gateway'] as const)
    if (processes && !processes.some((process) => [role, 'all'].includes(process.role)))
      add(role, `no ${role} has reported within the last minute`, null);
  for (const name of facts.differing_secrets ?? []) add('secret', `gateways have different values of ${name}`, null);
  for (const { id, spool } of processes ?? [])
    if (spool.share > SPOOL_SHARE)
      add('audit', `the audit spool of ${id} is at ${Math.floor(spool.share * 100)} %`, null);
  for (const one of lag ?? []) addOld('lag', `messages of ${one.topic} wait for ${one.group}`, one, BEHIND_S);
  addOld('outbox', 'events wait in the outbox', outbox, BEHIND_S);
  for (const one of dead ?? []) addOld('dead', `dead letters of ${one.topic} wait for a decision`, one, HOUR_S);
  addOld('parked', `notifications of ${parked?.transactions} unregistered transactions wait`, parked, HOUR_S);
  const verified = audit?.verified;
  if (verified && verified.problems > 0)
    add('verification', `the last verification of the audit found ${verified.problems} problems`, verified.at);
  for (const { id, at } of migrations?.failed ?? []) add('migration', `the user migration ${id} has failed`, at);
  if (migrations?.stuck_since) add('stuck', 'user migrations wait, and no worker takes one', migrations.stuck_since);
  return findings;
}
