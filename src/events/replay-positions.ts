import type { BusDatabase } from './embedded-store.ts';

const GROUP = 'portcullis.transactions.replay';

/**
 * How far the dead letters of each partition have been replayed, kept in the database whatever the bus is: Kafka
 * forgets the offsets of a group that nobody is a member of after seven days, and keeps dead letters for thirty.
 */
export class ReplayPositions {
  readonly #database: BusDatabase;
  readonly #topicPrefix: string;

  constructor(database: BusDatabase, topicPrefix: string) {
    this.#database = database;
    this.#topicPrefix = topicPrefix;
  }

  /** The offset of the last message that was replayed, of each partition of a topic that has had one. */
  async of(topic: string): Promise<Map<number, bigint>> {
    const name = this.#name(topic);
    const rows = await this.#raw<{ topic: string; position: string }>(
      (text) => text`
        select topic, position::text as position from bus_offsets
        where group_id = ${GROUP} and starts_with(topic, ${name})`,
    );
    return new Map(rows.map((row) => [Number(row.topic.slice(name.length)), BigInt(row.position)]));
  }

  /** Everything of the partition up to `offset` has been replayed. */
  async keep(topic: string, partition: number, offset: string): Promise<void> {
    await this.#raw(
      (text) => text`
        insert into bus_offsets (group_id, topic, position)
        values (${GROUP}, ${`${this.#name(topic)}${partition}`}, ${offset}::bigint)
        on conflict (group_id, topic) do update set position = excluded.position`,
    );
  }

  /** The name of a partition is no topic's: it never keeps the embedded bus from removing what is past its age. */
  #name(topic: string): string {
    return `${this.#topicPrefix}${topic}/`;
  }

  get #raw() {
    return this.#database.unscoped('dead letters are of all nodes').raw;
  }
}
