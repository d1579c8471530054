/** The topics of notifications and registrations, by what they carry (the deployment's prefix is the bus's matter). */
export const TOPICS = {
  admin: 'transactions.admin',
  user: 'transactions.user',
  registered: 'transactions.registered',
} as const;

export type Topic = (typeof TOPICS)[keyof typeof TOPICS];

/** Where the poison of a topic goes. */
export function deadLetterTopicOf(topic: string): string {
  return `${topic}.dlq`;
}

/** Whether `topic` holds the poison of another. */
export function isDeadLetterTopic(topic: string): boolean {
  return topic.endsWith('.dlq');
}

/** Every topic that an instance needs, dead letters included. */
export const ALL_TOPICS: readonly string[] = Object.values(TOPICS).flatMap((topic) => [
  topic,
  deadLetterTopicOf(topic),
]);
