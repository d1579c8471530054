import { Migration } from '@mikro-orm/migrations';

const MOST_ATTEMPTS = 10;
const UNIQUE_VIOLATION = '23505';

interface UniqueKey {
  table: string;
  column: string;
  where: string;
}

const KEYS: readonly UniqueKey[] = [
  { table: 'users', column: 'email', where: "where email <> ''" },
  { table: 'supervisors', column: 'username', where: '' },
];

/**
 * Makes the keys of emails and usernames unique, while other processes write. It runs outside a transaction, and again
 * after it was interrupted: what is invalid then is built anew.
 */
export class Migration20261128UniqueIdentifiers extends Migration {
  override isTransactional(): boolean {
    return false;
  }

  override async up(): Promise<void> {
    for (const key of KEYS) await this.#build(key);
  }

  async #build(key: UniqueKey): Promise<void> {
    const { table, column, where } = key;
    const index = `${table}_${column}_key`;
    for (let attempt = 1; ; attempt += 1) {
      const [state] = await this.execute(
        `select indisvalid as valid from pg_index where indexrelid = to_regclass('${index}')`,
      );
      if (state?.valid) return;
      await this.execute(`drop index concurrently if exists ${index}`);
      await this.#tellApart(key);
      try {
        await this.execute(
          `create unique index concurrently ${index}
            on ${table} (node_id, identifier_key(${column}), ${column}_clash) ${where}`,
        );
      } catch (error) {
        // A process of 0.1.0 has added a row with a key that is taken.
        if ((error as { code?: unknown }).code !== UNIQUE_VIOLATION || attempt === MOST_ATTEMPTS) throw error;
      }
    }
  }

  /** Numbers the rows that have one key: the oldest is 0. */
  async #tellApart({ table, column, where }: UniqueKey): Promise<void> {
    await this.execute(
      `update ${table} t set ${column}_clash = numbered.place
        from (
          select id, row_number() over (
            partition by node_id, identifier_key(${column}) order by created_at, id) - 1 as place
          from ${table} ${where}) numbered
        where t.id = numbered.id and t.${column}_clash <> numbered.place`,
    );
  }
}
