import { deadLetterTopicOf } from './dead-letters.ts';

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

/** Every topic that an installation needs, including those for dead letters. */
export const ALL_TOPICS: readonly string[] = [...Object.values(TOPICS), ...REFERENCE_TOPICS].flatMap((topic) => [
  topic,
  deadLetterTopicOf(topic),
]);
