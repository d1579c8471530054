import { deadLetterTopicOf } from './event-bus.ts';

/**
 * The topics of notifications, registrations and users' KYC tokens, without the installation's prefix (the bus adds
 * it).
 */
export const TOPICS = {
  admin: 'transactions.admin',
  user: 'transactions.user',
  registered: 'transactions.registered',
  kycToken: 'users.kyc-token',
} as const;

/** The kinds of reference data, which other services of the platform own, parents before their children. */
export const REFERENCE_KINDS = ['nodes', 'chains', 'networks', 'currencies', 'accounts', 'wallets', 'assets'] as const;

/** The topics of reference data. They are compacted: the latest message of each key is retained for ever. */
export const REFERENCE_TOPICS: readonly string[] = REFERENCE_KINDS.map((kind) => `reference.${kind}`);

/** Returns whether a topic is compacted: it retains the latest message of each key, however old. */
export function isCompactedTopic(topic: string): boolean {
  return REFERENCE_TOPICS.includes(topic);
}

/** The topics to which messages are republished. */
export const REPUBLISHED: readonly string[] = [TOPICS.admin, TOPICS.user, TOPICS.registered];
/**
 * The topics whose dead letters can be replayed. Dead letters of reference data are applied directly, because their topics are
 * compacted.
 */
export const REPLAYABLE: readonly string[] = [...REPUBLISHED, ...REFERENCE_TOPICS];

/** The topics of each consumer group of the product. */
export const CONSUMED: ReadonlyMap<string, readonly string[]> = new Map([
  ...REPUBLISHED.map((topic) => [`portcullis.${topic}`, [topic]] as const),
  ['portcullis.reference', REFERENCE_TOPICS],
]);

/** Every topic that an installation needs, including those for dead letters. */
export const ALL_TOPICS: readonly string[] = [...Object.values(TOPICS), ...REFERENCE_TOPICS].flatMap((topic) => [
  topic,
  deadLetterTopicOf(topic),
]);
