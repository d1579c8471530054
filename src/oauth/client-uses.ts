import type { ClientRecord } from '../clients/client-record.ts';
import type { ClientUsage } from './client-usage.ts';
import { ClientUse } from './client-use.ts';

const SAVE_EVERY_MS = 2_000;
const LAST_SAVE_MS = 5_000;
const MAX_IN_ONE_SAVE = 1_000;
const MAX_CLIENTS = 10_000;

interface UsesParts {
  usage: Pick<ClientUsage, 'save'>;
  /** Told once of each time that nothing can be saved, with its first error. */
  onError(error: unknown): void;
}

interface Asked {
  use: ClientUse;
  monthAt: number;
  answer: PromiseWithResolvers<number>;
}

/** What this process knows of its clients' use: kept in memory, saved every two seconds and at the end. */
export class ClientUses {
  readonly #parts: UsesParts;
  readonly #uses = new Map<string, ClientUse>();
  /** Saves run one after another: a count that is on its way is not taken twice. */
  #last: Promise<void> = Promise.resolve();
  #asked = new Map<ClientUse, Asked>();
  #isSaving = false;
  #isFailing = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: UsesParts) {
    this.#parts = parts;
  }

  /** Saves from now on. */
  start(): void {
    this.#timer ??= setInterval(() => {
      // Whatever the database is slow with, one save is under way at most.
      if (!this.#isSaving) void this.save();
    }, SAVE_EVERY_MS).unref();
  }

  /** Saves a last time, for at most five seconds. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    const { promise: tooLate, resolve } = Promise.withResolvers<void>();
    const deadline = setTimeout(resolve, LAST_SAVE_MS);
    await Promise.race([this.save(), tooLate]);
    clearTimeout(deadline);
  }

  of(client: ClientRecord): ClientUse {
    const known = this.#uses.get(client.clientId);
    if (known) return known;
    const use = new ClientUse(client);
    this.#uses.set(client.clientId, use);
    return use;
  }

  /** Saves now all that is not saved; what cannot be is kept for the next time. Never rejects. */
  async save(): Promise<void> {
    this.#isSaving = true;
    await this.#next(async () => {
      const unsaved = [...this.#uses.values()].filter((use) => !use.isSaved);
      for (let first = 0; first < unsaved.length; first += MAX_IN_ONE_SAVE) {
        await this.#saveThese(unsaved.slice(first, first + MAX_IN_ONE_SAVE).map((use) => ({ use })));
      }
      this.#isFailing = false;
      this.#forgetSome();
    }).catch((error: unknown) => {
      if (!this.#isFailing) this.#parts.onError(error);
      this.#isFailing = true;
    });
    this.#isSaving = false;
  }

  /**
   * Saves what is known of a client, and gives what the database then has of the month, with what came meanwhile. Those
   * who ask at once are answered by one statement. @throws what the database throws.
   */
  sync(use: ClientUse, monthAt: number): Promise<number> {
    const known = this.#asked.get(use);
    if (known?.monthAt === monthAt) return known.answer.promise;
    const asked = { use, monthAt, answer: Promise.withResolvers<number>() };
    if (known) void this.#next(() => this.#answer([asked]));
    else this.#ask(asked);
    return asked.answer.promise;
  }

  #ask(asked: Asked): void {
    this.#asked.set(asked.use, asked);
    if (this.#asked.size > 1) return;
    void this.#next(() => {
      const all = [...this.#asked.values()];
      this.#asked.clear();
      return this.#answer(all);
    });
  }

  async #answer(asked: readonly Asked[]): Promise<void> {
    try {
      await this.#saveThese(asked);
      for (const { use, monthAt, answer } of asked) answer.resolve(use.known(monthAt) ?? 0);
    } catch (error) {
      for (const { answer } of asked) answer.reject(error);
    }
  }

  async #saveThese(uses: readonly { use: ClientUse; monthAt?: number }[]): Promise<void> {
    const unsaved = uses.map(({ use, monthAt }) => use.takeUnsaved(monthAt));
    try {
      const used = await this.#parts.usage.save(
        unsaved.flatMap(({ quotas }) => quotas),
        unsaved.flatMap(({ lastUses }) => lastUses),
      );
      let at = 0;
      for (const { quotas, done } of unsaved) {
        done(used.slice(at, at + quotas.length));
        at += quotas.length;
      }
    } catch (error) {
      for (const { failed } of unsaved) failed();
      throw error;
    }
  }

  #next(work: () => Promise<void>): Promise<void> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }

  #forgetSome(): void {
    if (this.#uses.size <= MAX_CLIENTS) return;
    for (const [clientId, use] of this.#uses) if (use.isSaved && !use.seeding) this.#uses.delete(clientId);
  }
}
