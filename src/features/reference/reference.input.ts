import { z } from 'zod';
import { REFERENCE_KINDS } from '../../events/bus/topics.ts';
import {
  boundedTextInput,
  isUuid,
  objectInput,
  readAs,
  textInput,
  uuidInput,
  wholeNumberInput,
} from '../../lib/input.ts';
import { parseInstant, pgFromInstant } from '../../lib/instants.ts';
import { integerOf } from '../../lib/json.ts';
import { issuesOf } from '../../platform/errors.ts';
import {
  isOfNode,
  kindOfTopic,
  type ReferenceChange,
  type ReferenceKind,
  type ReferenceRow,
  TABLES,
  UnfitReferenceError,
} from './reference.rules.ts';

const MAX_VERSION = 2n ** 63n - 1n;

const VERSION = 'must be an integer, at least 0';
const versionInput = z
  .unknown()
  .transform(readAs(integerOf, VERSION))
  .refine((version) => version >= 0n && version <= MAX_VERSION, VERSION)
  .meta({ type: 'integer', format: 'int64', minimum: 0 });

const TIME = 'must be an ISO 8601 date and time';
const timeInput = textInput().transform(readAs(parseInstant, TIME)).transform(pgFromInstant).meta({
  description: 'ISO 8601 with any precision and any offset, UTC if there is none; stored to the microsecond.',
});

const MEMBERS = { uuid: uuidInput, text: textInput, integer: () => z.int32(), timestamptz: () => timeInput };
/** The members that a row may leave out. */
const OPTIONAL: ReadonlySet<string> = new Set(['updated_at', 'deleted_at', 'contract_address']);

const TEMPLATE = 'must be an http or https URL with {hash} in its path or query, and without userinfo';
const explorerUrlInput = textInput()
  .max(2_048, 'must have at most 2048 characters')
  .regex(/^https?:\/\/[^\s/?#{}@\\]+\/\S*\{hash\}\S*$/, TEMPLATE)
  .refine(URL.canParse, TEMPLATE)
  .meta({ description: 'The URL of a transaction in a block explorer; {hash} stands for the hash.' });

/**
 * The members, some of one kind alone, that only describe a row. Earlier releases ignored them, so a row with an invalid
 * one is stored without it.
 */
const DESCRIPTIVE: Readonly<Record<string, RowMember>> = {
  explorer_url: explorerUrlInput,
  decimals: wholeNumberInput(0, 255),
  'currencies.name': textInput(),
};

/** At most 2,560 bytes: PostgreSQL indexes symbols, and none longer than 2,700 bytes. */
const indexedInput = boundedTextInput(640);

type RowMember = z.ZodType<string | number | undefined>;

function rowInput(kind: ReferenceKind) {
  const members = Object.entries(TABLES[kind].columns).map(([name, type]): [string, RowMember] => {
    const descriptive = DESCRIPTIVE[name] ?? DESCRIPTIVE[`${kind}.${name}`];
    if (descriptive) return [name, descriptive.optional().catch(undefined)];
    const member: RowMember = kind === 'currencies' && name === 'symbol' ? indexedInput : MEMBERS[type]();
    return [name, OPTIONAL.has(name) ? member.optional() : member];
  });
  return [kind, objectInput(Object.fromEntries(members))] as const;
}
/**
 * The schemas of the rows of each kind, without the version. Null members count as absent; unknown members are ignored.
 */
export const rowInputs = Object.fromEntries(REFERENCE_KINDS.map(rowInput)) as Record<
  ReferenceKind,
  ReturnType<typeof rowInput>[1]
>;

/** The schema of the members that every row has. */
export const commonInput = objectInput({ id: uuidInput().optional(), version: versionInput });

/**
 * Parses the change in a message of a topic or in a line, as `parseReferenceChange`.
 * @throws UnfitReferenceError for a topic of other data too.
 */
export function parseOfTopic(topic: string, key: unknown, value: unknown): ReferenceChange {
  const kind = kindOfTopic(topic);
  if (!kind) throw new UnfitReferenceError(`${JSON.stringify(topic.slice(0, 100))} is not a topic of reference data`);
  return parseReferenceChange(kind, key, value);
}

/**
 * Parses the change in a message or a line. The key is the row's id; the value is the row with its version, or null for
 * a tombstone. Unknown members are ignored.
 * @throws UnfitReferenceError when it is malformed.
 */
export function parseReferenceChange(kind: ReferenceKind, key: unknown, value: unknown): ReferenceChange {
  if (typeof key !== 'string' || !isUuid(key)) throw new UnfitReferenceError('the key must be a UUID');
  const id = key.toLowerCase();
  if (value === null) return { kind, id, version: undefined, row: undefined };
  const common = commonInput.safeParse(value);
  if (!common.success) throw unfit(common.error, value);
  if (common.data.id !== undefined && common.data.id !== id) {
    throw new UnfitReferenceError('id must be equal to the key');
  }
  const result = rowInputs[kind].safeParse(value);
  if (!result.success) throw unfit(result.error, value);
  return { kind, id, version: common.data.version, row: completed(kind, result.data) };
}

function completed(kind: ReferenceKind, members: Readonly<Record<string, string | number | undefined>>): ReferenceRow {
  const row = Object.fromEntries(Object.entries(members).map(([name, member]) => [name, member ?? null]));
  return isOfNode(kind) ? { ...row, updated_at: row.updated_at ?? row.created_at ?? null } : row;
}

function unfit(error: z.ZodError, value: unknown): UnfitReferenceError {
  const faults = issuesOf(error, value).map(({ path, message }) => `${path || 'the value'} ${message}`);
  return new UnfitReferenceError(faults.join('; '));
}
