import { pino } from 'pino';
import type { Demo } from '../../../src/app/demo/demo.ts';
import type { Service } from '../../../src/app/service.ts';
import type { Log } from '../../../src/lib/log.ts';
import type { Secrets } from '../../../src/platform/config/secrets.ts';

/** A signed token, whoever's it is. */
const TOKEN = 'eyJ[A-Za-z0-9_-]{10,}[.]eyJ[A-Za-z0-9_-]{10,}[.][A-Za-z0-9_-]{16,}';
const SHOWN = 5;
const LOOK_AT_CHARACTERS = 1024 * 1024;

/** Looks for an instance's secrets, and for anybody's token, in all that it logs and in its audit records. */
export class SecretWatch {
  readonly #secrets: Set<string>;
  readonly #found: string[] = [];
  #lines = '';

  constructor({ jwt, pepper, webhook }: Secrets) {
    const rotating = [...Object.values(jwt), pepper, webhook.password];
    const known = rotating.flatMap(({ current, previous }) => [current, previous ?? '']);
    this.#secrets = new Set(known.filter((secret) => secret.length >= 16));
  }

  know({ client, supervisor }: Demo): void {
    this.#secrets.add(client.client_secret);
    this.#secrets.add(supervisor.password);
  }

  /** A log whose lines are looked at as pino writes them. */
  log(to: Log): Log {
    const lines = pino({ level: 'debug' }, { write: (line: string) => this.#take(line) });
    const level = (name: keyof Log) => (fields: object, message: string) => {
      lines[name](fields, message);
      to[name](fields, message);
    };
    return { debug: level('debug'), info: level('info'), warn: level('warn'), error: level('error') };
  }

  /** Looks through the audit records, if the database is still there. */
  async lookThroughRecords({ context }: Service): Promise<void> {
    const { auditWriter, database } = context;
    try {
      await database.checkHealth();
    } catch {
      return;
    }
    await auditWriter.flush();
    const patterns = Array.from(this.#secrets, patternOf);
    const rows = await database.db.unscoped('the records of all nodes are looked through').raw(
      (sql) => sql<{ found: string }>`
        select substring(r::text from 1 for 500) as found from audit_records r
        where r::text ~ ${TOKEN} or r::text like any (array(select jsonb_array_elements_text(${JSON.stringify(patterns)}::jsonb)))
        limit ${SHOWN}`,
    );
    for (const { found } of rows) this.#found.push(`audit: ${found}`);
  }

  /** @throws Error where anything was found. */
  assertNone(): void {
    this.#look();
    if (this.#found.length > 0) throw new Error(`secrets were told:\n${this.#found.slice(0, SHOWN).join('\n')}`);
  }

  #take(line: string): void {
    this.#lines += line;
    if (this.#lines.length > LOOK_AT_CHARACTERS) this.#look();
  }

  #look(): void {
    const isTelling = (text: string) =>
      token.test(text) || this.#secrets.values().some((secret) => text.includes(secret));
    const token = new RegExp(TOKEN);
    if (isTelling(this.#lines)) {
      this.#found.push(
        ...this.#lines
          .split('\n')
          .filter(isTelling)
          .map((line) => `log: ${line}`),
      );
    }
    this.#lines = '';
  }
}

function patternOf(text: string): string {
  return `%${text.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`;
}
