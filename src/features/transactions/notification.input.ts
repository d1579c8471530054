import { hash } from 'node:crypto';
import { z } from 'zod';
import { PoisonError } from '../../events/bus/event-bus.ts';
import { BoundedMap } from '../../lib/bounded-map.ts';
import { boundedTextInput, objectInput, readAs, textInput, uuidInput } from '../../lib/input.ts';
import { type Instant, parseInstant } from '../../lib/instants.ts';
import { decodeUtf8, integerOf, parsedOr, parseJson } from '../../lib/json.ts';
import { issuesOf } from '../../platform/errors.ts';
import { MAX_LENGTHS } from '../../tables/text-lengths.ts';
import {
  TRANSACTION_COLLECTIONS,
  type TransactionCollection,
  type TransactionStatus,
} from '../../tables/transaction-content.ts';
import { isStatus } from './type-codes.rules.ts';

/** A time as it was received, with the instant that it names. */
export interface ReceivedTime extends Instant {
  readonly text: string;
}

/**
 * A transaction notification (docs/contract.md, 2.7). Empty text and 0n mean that the chain processor sent no
 * value.
 */
export interface Notification {
  readonly id: string;
  readonly type: number;
  readonly status: TransactionStatus;
  readonly transactionHash: string;
  readonly contractAddress: string;
  readonly gasUsed: bigint;
  readonly error: string | null;
  readonly createdAt: ReceivedTime;
  readonly updatedAt: ReceivedTime;
}

const INT32 = { minimum: -(2 ** 31), maximum: 2 ** 31 - 1 };
const MAX_UINT64 = 2n ** 64n - 1n;
const TIME = 'must be an ISO 8601 date and time such as 2026-11-21T10:30:00Z';
const STATUSES = 'must be 1 (Started), 2 (InProgress), 3 (Done), 4 (Error) or 5 (PendingReceipt)';

const MAX_ID_LENGTH = MAX_LENGTHS.transaction_ids.id;
const ID = `must have 1 to ${MAX_ID_LENGTH} characters`;
const id = textInput().min(1, ID).max(MAX_ID_LENGTH, ID);

function receivedTime(text: string): ReceivedTime | undefined {
  const instant = parseInstant(text);
  return instant && { text, ...instant };
}

const time = z.string(TIME).transform(readAs(receivedTime, TIME)).meta({ type: 'string', format: 'date-time' });

function integerIn(minimum: bigint, maximum: bigint) {
  const read = (value: unknown) => {
    const integer = integerOf(value);
    return integer !== undefined && integer >= minimum && integer <= maximum ? integer : undefined;
  };
  return z.unknown().transform(readAs(read, `must be an integer from ${minimum} to ${maximum}`));
}

// Accepts a code that no collection knows, but not one that GraphQL's Int cannot represent.
const type = integerIn(BigInt(INT32.minimum), BigInt(INT32.maximum))
  .transform(Number)
  .meta({ type: 'integer', format: 'int32', ...INT32 });

function statusIn(value: unknown): TransactionStatus | undefined {
  const code = Number(integerOf(value));
  return isStatus(code) ? code : undefined;
}

const status = z
  .unknown()
  .transform(readAs(statusIn, STATUSES))
  .meta({ type: 'integer', enum: [1, 2, 3, 4, 5] });

const gasUsed = integerIn(0n, MAX_UINT64).meta({
  type: 'integer',
  format: 'uint64',
  minimum: 0,
  maximum: Number(MAX_UINT64),
});

const members = objectInput({
  id,
  type,
  status,
  transaction_hash: textInput().optional(),
  contract_address: textInput().optional(),
  gas_used: gasUsed.optional(),
  error: textInput().nullable().optional(),
  created_at: time,
  updated_at: time,
});

/** The schema of the inbound webhook's body, after `parseJson`. Unknown members are ignored; null counts as absent. */
export const notificationInput = members.transform(
  (body): Notification => ({
    id: body.id,
    type: body.type,
    status: body.status,
    transactionHash: body.transaction_hash ?? '',
    contractAddress: body.contract_address ?? '',
    gasUsed: body.gas_used ?? 0n,
    error: body.error ?? null,
    createdAt: body.created_at,
    updatedAt: body.updated_at,
  }),
);

/** A notification as received: the bytes of the body, and the correlation id of the request that brought it. */
export interface Delivery {
  body: Uint8Array;
  correlationId: string;
  /** The W3C trace context of that request; undefined when it has none. */
  traceparent?: string | undefined;
}

/** A registration: the tenant, collection, type and asset of a transaction. */
export interface NewTransaction {
  id: string;
  nodeId: string;
  collection: TransactionCollection;
  type: number;
  assetId: string | null;
}

/** A delivery with its parsed notification, and the SHA-256 of its bytes in hexadecimal. */
export interface ParsedDelivery extends Delivery {
  notification: Notification;
  sha256: string;
}

/** How many bytes the notifications take that are remembered, and what one takes besides its text. */
const REMEMBERED_BYTES = 4 * 1024 * 1024;
const NOTIFICATION_BYTES = 1_024;

/**
 * The notifications that this process has parsed last, by the SHA-256 of their bytes: the webhook receives each, and both
 * topics bring it again.
 */
const remembered = new BoundedMap<string, { notification: Notification; bytes: number }>(REMEMBERED_BYTES, {
  weightOf: ({ bytes }) => bytes,
});

/** Remembers the notification that has these bytes. */
export function rememberNotification(
  body: Uint8Array,
  notification: Notification,
  sha256 = hash('sha256', body),
): void {
  remembered.set(sha256, { notification, bytes: NOTIFICATION_BYTES + body.length });
}

/**
 * Parses the body of a delivery, unless this process has done so before.
 * @throws PoisonError when it is not a notification.
 */
export function parseDelivery(delivery: Delivery): ParsedDelivery {
  const sha256 = hash('sha256', delivery.body);
  const before = remembered.get(sha256);
  if (before) return { ...delivery, sha256, notification: before.notification };
  const notification = parsedMessage(delivery.body, notificationInput, 'not a notification');
  rememberNotification(delivery.body, notification, sha256);
  return { ...delivery, sha256, notification };
}

/** The schema of a transaction id: 1 to 128 characters, unique across all tenants and collections. */
export const transactionIdInput = boundedTextInput(MAX_ID_LENGTH).min(1, 'must not be empty');

/** The schema of the messages on the topic `transactions.registered`. */
export const registrationInput = objectInput({
  id: transactionIdInput,
  collection: z.enum(TRANSACTION_COLLECTIONS),
  type: z.int32(),
  node_id: uuidInput(),
  asset_id: uuidInput().optional(),
});

/**
 * Parses a registration from the bytes of a message.
 * @throws PoisonError when they are not a registration.
 */
export function parseRegistration(value: Uint8Array): NewTransaction {
  const {
    node_id: nodeId,
    asset_id: assetId = null,
    ...registration
  } = parsedMessage(value, registrationInput, 'not a registration');
  return { ...registration, nodeId, assetId };
}

function parsedMessage<Schema extends z.ZodType>(bytes: Uint8Array, schema: Schema, fault: string): z.output<Schema> {
  const value = parsedOr(
    () => parseJson(decodeUtf8(bytes)),
    ({ message }) => new PoisonError(`${fault}: ${message}`),
  );
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issues = issuesOf(result.error, value).map(({ path, message }) => `${path} ${message}`.trim());
  throw new PoisonError(`${fault}: ${issues.join('; ')}`);
}
