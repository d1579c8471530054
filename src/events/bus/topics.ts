import { deadLetterTopicOf } from './dead-letters.ts';

/** The topics of notifications, registrations and users' KYC tokens, by what they carry (the deployment's prefix is the bus's matter). */
export const TOPICS = {
  admin: 'transactions.admin',
  user: 'transactions.user',
  registered: 'transactions.registered',
  kycToken: 'users.kyc-token',
} as const;

/** The topics of rows that other services of the platform own. Compacted: the latest row of each id stays for good. */
export const REFERENCE_TOPICS = [
  'reference.nodes',
  'reference.chains',
  'reference.networks',
  'reference.currencies',
  'reference.accounts',
  'reference.wallets',
  'reference.assets',
] as const;

/** Returns whether a topic keeps the latest message of each key, however old. */
export function isCompactedTopic(topic: string): boolean {
  return REFERENCE_TOPICS.some((known) => known === topic);
}

/** Every topic that an instance needs, dead letters included. */
export const ALL_TOPICS: readonly string[] = [...Object.values(TOPICS), ...REFERENCE_TOPICS].flatMap((topic) => [
  topic,
  deadLetterTopicOf(topic),
]);
