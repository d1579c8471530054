import type { Selectable } from 'kysely';
import { MASK } from '../../audit/mask-keys.ts';
import { isUuid } from '../../lib/input.ts';
import type { Db } from '../../platform/database/database.ts';
import type { Tables } from '../../tables/tables.ts';
import { identifiesPerson, namesUser } from './erased-text.rules.ts';
import type { Person } from './recorded-texts.ts';

const WINDOW = 500;
const COLUMNS = ['rule_id', 'version', 'name', 'subject', 'correlation_id', 'sign_and_approve_rule'] as const;

type VersionTexts = Pick<Selectable<Tables['wallet_rule_versions']>, (typeof COLUMNS)[number]>;

interface RuleTextsParts {
  db: Db;
  nowMs(): number;
}

/** Erases personal data from wallet rules and their versions: from their names, and from who wrote them. */
export class RuleTexts {
  readonly #parts: RuleTextsParts;

  constructor(parts: RuleTextsParts) {
    this.#parts = parts;
  }

  /** Goes through all versions of the tenant, in windows along the primary key, so that no statement takes long. */
  async erase(nodeId: string, person: Person): Promise<void> {
    let after: Pick<VersionTexts, 'rule_id' | 'version'> | undefined;
    do {
      const window: VersionTexts[] = await this.#parts.db.forNode(nodeId).run((k) =>
        k
          .selectFrom('wallet_rule_versions')
          .select(COLUMNS)
          .$if(after !== undefined, (query) =>
            query.where((eb) =>
              eb(eb.refTuple('rule_id', 'version'), '>', eb.tuple(after?.rule_id ?? '', after?.version ?? 0)),
            ),
          )
          .orderBy('rule_id')
          .orderBy('version')
          .limit(WINDOW),
      );
      for (const version of window) await this.#eraseVersion(nodeId, version, person);
      after = window.length < WINDOW ? undefined : window.at(-1);
    } while (after !== undefined);
  }

  async #eraseVersion(nodeId: string, row: VersionTexts, { data, identifiers }: Person): Promise<void> {
    const { rule_id, version, name, subject, correlation_id } = row;
    const rule = [name, row.sign_and_approve_rule?.mandatory_user_id ?? ''];
    const texts = [...rule, subject ?? '', correlation_id ?? ''];
    if (!texts.some((text) => namesUser(text, identifiers))) return;
    const scoped = this.#parts.db.forNode(nodeId);
    const shown = (text: string | null) => (text !== null && identifiesPerson(text, data) ? MASK : text);
    const author = { subject: shown(subject), correlation_id: shown(correlation_id) };
    await scoped.run((k) =>
      k.updateTable('wallet_rule_versions').set(author).where('rule_id', '=', rule_id).where('version', '=', version),
    );
    // An external id can be any word: by itself it must not take the name of every rule that has the word.
    const telling = identifiers.filter((id) => id.includes('@') || isUuid(id) || id === data.address.toLowerCase());
    const isNamed = rule.some((text) => namesUser(text, telling));
    if (isNamed && identifiesPerson(name, data)) await this.#eraseName(nodeId, rule_id, name);
  }

  /** Erases a name from a rule, which makes a version, and then from its versions: none of them can take it over again. */
  async #eraseName(nodeId: string, ruleId: string, name: string): Promise<void> {
    const scoped = this.#parts.db.forNode(nodeId);
    const updated_at = new Date(this.#parts.nowMs()).toISOString();
    await scoped.run((k) =>
      k
        .updateTable('wallet_rules')
        .set((eb) => ({ name: MASK, version: eb('version', '+', 1), updated_at }))
        .where('id', '=', ruleId)
        .where('name', '=', name),
    );
    await scoped.run((k) =>
      k.updateTable('wallet_rule_versions').set({ name: MASK }).where('rule_id', '=', ruleId).where('name', '=', name),
    );
  }
}
