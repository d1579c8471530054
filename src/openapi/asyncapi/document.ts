import { DAY_MS, PARTITIONS, retentionDays } from '../../events/kafka-admin.ts';
import { ALL_TOPICS, isCompactedTopic, isDeadLetterTopic, TOPICS } from '../../events/topics.ts';
import { REFERENCE_KINDS } from '../../reference/reference-kinds.ts';
import type { JsonSchema } from '../json-schema.ts';
import { headerSchemas } from './headers.ts';
import { payloadSchemas, rowName } from './schemas.ts';

interface MessageObject {
  title: string;
  contentType?: string;
  headers: { $ref: string };
  payload: { $ref: string };
  bindings: { kafka: { key: JsonSchema } };
}

interface Topic {
  summary: string;
  messages: readonly string[];
  /** Whether this product publishes to it, and whether it consumes it. */
  actions: readonly ('send' | 'receive')[];
}

const INTRODUCTION = [
  'The Kafka topics of the gateway. A deployment may put a prefix before every name (`TOPIC_PREFIX`).',
  'Delivery is at least once, in order for one key. Consumers ignore headers and members that they do not know, and later schema versions.',
].join('\n\n');

const uuidKey: JsonSchema = { type: 'string', format: 'uuid' };
const transactionKey: JsonSchema = {
  type: 'string',
  minLength: 1,
  maxLength: 128,
  description: 'The id of the transaction.',
};

/** Every topic in AsyncAPI 3.0, generated from the schemas that messages are read by. @param version of the product. */
export function asyncApiDocument(version: string) {
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Portcullis',
      version,
      description: INTRODUCTION,
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    defaultContentType: 'application/json',
    channels: Object.fromEntries(ALL_TOPICS.map((topic) => [topic, channelOf(topic)])),
    operations: Object.fromEntries(
      ALL_TOPICS.flatMap((topic) =>
        topicOf(topic).actions.map((action) => [
          `${action}.${topic}`,
          { action, channel: { $ref: `#/channels/${topic}` } },
        ]),
      ),
    ),
    components: {
      messages: messages(),
      schemas: { ...payloadSchemas(), ...headerSchemas },
    },
  };
}

function topicOf(topic: string): Topic {
  if (isDeadLetterTopic(topic)) {
    return {
      summary: `What no repeat can apply of ${topic.replace(/\.dlq$/, '')}.`,
      messages: ['DeadLetter'],
      actions: ['send'],
    };
  }
  switch (topic) {
    case TOPICS.admin:
      return notifications('tokens, nodes and currencies');
    case TOPICS.user:
      return notifications('users, the secondary market and OTC');
    case TOPICS.registered:
      return {
        summary:
          'Which transactions there are, told by the services that own them; before or after their notifications.',
        messages: ['Registration'],
        actions: ['receive'],
      };
    case TOPICS.kycToken:
      return {
        summary: 'Users who need a KYC token: one event for each that is created, unless it was sent.',
        messages: ['KycTokenRequested'],
        actions: ['send'],
      };
    default: {
      const kind = REFERENCE_KINDS.find((known) => topic === `reference.${known}`);
      if (!kind) throw new Error(`${topic} is not described`);
      return {
        summary: `The ${kind} of the platform, told by the service that owns them.`,
        messages: [rowName(kind), 'Tombstone'],
        actions: ['receive'],
      };
    }
  }
}

function notifications(whose: string): Topic {
  return {
    summary: `Every notification of the webhook; consumed for the transactions of ${whose}.`,
    messages: ['Notification'],
    actions: ['send', 'receive'],
  };
}

function channelOf(topic: string) {
  const { summary, messages: names } = topicOf(topic);
  const kept = isCompactedTopic(topic)
    ? { 'cleanup.policy': ['compact'] }
    : { 'cleanup.policy': ['delete'], 'retention.ms': retentionDays(topic) * DAY_MS };
  return {
    address: topic,
    summary,
    messages: Object.fromEntries(names.map((name) => [name, { $ref: `#/components/messages/${name}` }])),
    bindings: { kafka: { partitions: PARTITIONS, topicConfiguration: kept, bindingVersion: '0.5.0' } },
  };
}

function messages(): Record<string, MessageObject> {
  const foreign = 'ForeignHeaders';
  return {
    Notification: message(
      'A transaction notification, its bytes unchanged',
      'NotificationHeaders',
      'Notification',
      transactionKey,
    ),
    Registration: message('A transaction and the node that it belongs to', foreign, 'Registration', transactionKey),
    KycTokenRequested: message('A user needs a KYC token', 'KycTokenRequestedHeaders', 'KycTokenRequested', uuidKey),
    ...Object.fromEntries(
      REFERENCE_KINDS.map((kind) => [rowName(kind), message(`A row of ${kind}`, foreign, rowName(kind), uuidKey)]),
    ),
    Tombstone: message('A row is gone', foreign, 'Tombstone', uuidKey),
    DeadLetter: {
      ...message('A message that cannot be applied', 'DeadHeaders', 'DeadBytes', { type: 'string' }),
      contentType: 'application/octet-stream',
    },
  };
}

function message(title: string, headers: string, payload: string, key: JsonSchema): MessageObject {
  return {
    title,
    headers: { $ref: `#/components/schemas/${headers}` },
    payload: { $ref: `#/components/schemas/${payload}` },
    bindings: { kafka: { key } },
  };
}
