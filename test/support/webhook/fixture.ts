import { randomUUID } from 'node:crypto';
import { BusUnavailableError, type EventBus, type PublishOptions } from '../../../src/events/bus/event-bus.ts';
import { TOPICS } from '../../../src/events/bus/topics.ts';
import { Recorder } from '../events/recorder.ts';
import { type Answer, type Portcullis, type StartOptions, startPortcullis } from '../harness.ts';

export const PATHS = ['/v2/webhooks/custodial', '/v2/webhooks'] as const;
export const PREVIOUS_PASSWORD = 'the password before: with a colon, and ünïcode';

/** What the bus does with a message: takes it, refuses it, or says nothing until the caller's patience ends. */
export type BusMood = 'accepts' | 'rejects' | 'does not respond';

export interface WebhookFixture extends AsyncDisposable {
  portcullis: Portcullis;
  bus: { mood: BusMood; deadlinesMs: (number | undefined)[] };
  /** What arrived on the two topics. */
  admin: Recorder;
  user: Recorder;
  /** Posts a body with the right credentials, unless told otherwise. */
  post(path: string, body: string | Buffer, headers?: Record<string, string>): Promise<Answer>;
}

export async function webhookFixture({ env, overrides }: StartOptions = {}): Promise<WebhookFixture> {
  const bus: WebhookFixture['bus'] = { mood: 'accepts', deadlinesMs: [] };
  const portcullis = await startPortcullis({
    env: { WEBHOOK_PASSWORD_PREVIOUS: PREVIOUS_PASSWORD, ...env },
    overrides: { ...overrides, bus: (real) => moody(real, bus) },
  });
  const [admin, user] = [new Recorder(), new Recorder()];
  await admin.follow(portcullis.service.context.bus, TOPICS.admin);
  await user.follow(portcullis.service.context.bus, TOPICS.user);
  const { username, password } = portcullis.webhook;
  return {
    portcullis,
    bus,
    admin,
    user,
    post: (path, body, headers = {}) =>
      portcullis.call('POST', path, {
        body,
        headers: { authorization: basic(username, password), 'content-type': 'application/json', ...headers },
      }),
    [Symbol.asyncDispose]: () => portcullis[Symbol.asyncDispose](),
  };
}

export function basic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

/** A valid notification with an id of its own. */
export function notification(members: object = {}) {
  return {
    id: randomUUID(),
    type: 1,
    status: 2,
    created_at: '2026-11-21T10:30:00Z',
    updated_at: '2026-11-21T10:31:00Z',
    ...members,
  };
}

function moody(real: EventBus, state: WebhookFixture['bus']): EventBus {
  async function publish(messages: Parameters<EventBus['publish']>[0], options?: PublishOptions): Promise<void> {
    state.deadlinesMs.push(options?.deadlineMs);
    switch (state.mood) {
      case 'accepts':
        return real.publish(messages, options);
      case 'rejects':
        throw new BusUnavailableError('refused');
      case 'does not respond': {
        const { promise, reject } = Promise.withResolvers<never>();
        setTimeout(() => reject(new BusUnavailableError('no answer')), Math.min(options?.deadlineMs ?? 0, 50));
        return promise;
      }
      default:
        return state.mood satisfies never;
    }
  }
  return {
    publish,
    subscribe: (options) => real.subscribe(options),
    ensureTopics: (topics) => real.ensureTopics(topics),
    missingTopics: (topics) => real.missingTopics(topics),
    checkHealth: () => real.checkHealth(),
    stop: () => real.stop(),
  };
}
