import { randomUUID } from 'node:crypto';
import { BoundedMap } from '../../lib/bounded-map.ts';
import type { Cache, NodeSessions, SessionState } from './cache.ts';
import {
  type CountedFailure,
  type CountedRequest,
  countRequest,
  FAILURE_WINDOW_MS,
  NOTHING_COUNTED,
  type RequestCounts,
  type RequestLimits,
  secondsLeft,
} from './counts.rules.ts';

const MAX_KEYS = 50_000;

interface Failures {
  startedAtMs: number;
  count: number;
}

/** The failures that one process has counted, for at most 50,000 keys: beyond that, the oldest window is forgotten. */
export class MemoryFailureCounts {
  /** The failures by key, in the order in which their windows began. */
  readonly #failures = new Map<string, Failures>();
  readonly #maxKeys: number;

  constructor(maxKeys = MAX_KEYS) {
    this.#maxKeys = maxKeys;
  }

  count(key: string, nowMs: number, step: 0 | 1 = 1): CountedFailure {
    const known = this.#failures.get(key);
    if (known && nowMs < known.startedAtMs + FAILURE_WINDOW_MS) {
      known.count += step;
      return { count: known.count, resetInSeconds: secondsLeft(known.startedAtMs, nowMs) };
    }
    this.#failures.delete(key);
    this.#forgetOldest(nowMs);
    this.#failures.set(key, { startedAtMs: nowMs, count: step });
    return { count: step, resetInSeconds: secondsLeft(nowMs, nowMs) };
  }

  #forgetOldest(nowMs: number): void {
    for (const [key, { startedAtMs }] of this.#failures) {
      if (this.#failures.size < this.#maxKeys && nowMs < startedAtMs + FAILURE_WINDOW_MS) return;
      this.#failures.delete(key);
    }
  }
}

const MAX_CLIENTS = 10_000;

/**
 * The requests that one process has counted, for at most 10,000 clients: beyond that, the client whose last request was
 * longest ago is forgotten.
 */
export class MemoryRequestCounts {
  readonly #counts: BoundedMap<string, RequestCounts>;

  constructor(maxClients = MAX_CLIENTS) {
    this.#counts = new BoundedMap(maxClients);
  }

  count(clientId: string, limits: RequestLimits, nowMs: number, seed: number | undefined): CountedRequest {
    const counted = countRequest(this.#counts.get(clientId) ?? NOTHING_COUNTED, limits, nowMs, seed);
    if (counted.outcome !== 'counted' && seed === undefined) return counted;
    this.#counts.set(clientId, counted);
    return counted;
  }

  get size(): number {
    return this.#counts.size;
  }

  /** Forgets the counts of a client. Returns false if there were none. */
  forget(clientId: string): boolean {
    return this.#counts.delete(clientId);
  }
}

const REMOVED_FOR_MS = 60_000;

interface Subject {
  expiries: Map<string, number>;
  /**
   * The ids of removed sessions, and until when (`performance.now()`) they cannot be added again, in the order of that
   * time.
   */
  removed: Map<string, number>;
}

interface Node {
  ready: boolean;
  subjects: Map<string, Subject>;
}

/** The cache of a single process. It starts empty, so that every tenant is unready at first. */
export class MemoryCache implements Cache {
  readonly #nodes = new Map<string, Node>();
  readonly #requests = new MemoryRequestCounts();
  readonly #failures = new MemoryFailureCounts();
  readonly generation = 0;
  readonly isRefusing = false;
  readonly #locks = new Map<string, { token: string; untilMs: number }>();

  sessionState(nodeId: string, subject: string, sessionId: string, nowMs: number): SessionState {
    const node = this.#nodes.get(nodeId);
    if (!node?.ready) return 'unready';
    const expiresAtMs = node.subjects.get(subject)?.expiries.get(sessionId);
    return expiresAtMs !== undefined && expiresAtMs > nowMs ? 'live' : 'absent';
  }

  async addSession(
    nodeId: string,
    subjectId: string,
    sessionId: string,
    expiresAtMs: number,
    nowMs: number,
    maxSessions: number,
  ): Promise<string[]> {
    const subject = this.#subject(nodeId, subjectId);
    if (isRemoved(subject, sessionId)) return [];
    const { expiries } = subject;
    expiries.delete(sessionId);
    for (const [id, endsAtMs] of expiries) if (endsAtMs <= nowMs) expiries.delete(id);
    const evicted = firstToEnd(expiries, expiries.size - (maxSessions - 1));
    remove(subject, evicted);
    expiries.set(sessionId, expiresAtMs);
    return evicted;
  }

  async prolongSession(nodeId: string, subjectId: string, sessionId: string, expiresAtMs: number): Promise<void> {
    const { ready } = this.#node(nodeId);
    const subject = this.#subject(nodeId, subjectId);
    if (ready && !subject.expiries.has(sessionId)) return;
    keepLonger(subject, sessionId, expiresAtMs);
  }

  async removeSessions(nodeId: string, subjectId: string, sessionIds: readonly string[]): Promise<void> {
    remove(this.#subject(nodeId, subjectId), sessionIds);
  }

  async rebuildSessions(nodeId: string, read: () => Promise<NodeSessions>): Promise<void> {
    const { live, ended = [] } = await read();
    for (const { subject, sessionId } of ended) remove(this.#subject(nodeId, subject), [sessionId]);
    for (const { subject, sessionId, expiresAtMs } of live) {
      keepLonger(this.#subject(nodeId, subject), sessionId, expiresAtMs);
    }
    this.#node(nodeId).ready = true;
  }

  countRequest(clientId: string, limits: RequestLimits, nowMs: number, seed: number | undefined): CountedRequest {
    return this.#requests.count(clientId, limits, nowMs, seed);
  }

  countFailure(key: string, nowMs: number, step?: 0 | 1): CountedFailure {
    return this.#failures.count(key, nowMs, step);
  }

  async lock(name: string, ttlMs: number): Promise<(() => Promise<void>) | undefined> {
    const held = this.#locks.get(name);
    if (held !== undefined && held.untilMs > performance.now()) return undefined;
    const token = randomUUID();
    this.#locks.set(name, { token, untilMs: performance.now() + ttlMs });
    return async () => {
      if (this.#locks.get(name)?.token === token) this.#locks.delete(name);
    };
  }

  async checkHealth(): Promise<void> {}

  refusesSessions(): boolean {
    return this.isRefusing;
  }

  async stop(): Promise<void> {}

  #node(nodeId: string): Node {
    const node = this.#nodes.get(nodeId) ?? { ready: false, subjects: new Map() };
    this.#nodes.set(nodeId, node);
    return node;
  }

  #subject(nodeId: string, subjectId: string): Subject {
    const { subjects } = this.#node(nodeId);
    const subject = subjects.get(subjectId) ?? { expiries: new Map(), removed: new Map() };
    subjects.set(subjectId, subject);
    return subject;
  }
}

function firstToEnd(expiries: Map<string, number>, count: number): string[] {
  if (count <= 0) return [];
  const byEnd = [...expiries].sort(([idA, a], [idB, b]) => a - b || (idA < idB ? -1 : 1));
  return byEnd.slice(0, count).map(([id]) => id);
}

function keepLonger(subject: Subject, sessionId: string, expiresAtMs: number): void {
  if (isRemoved(subject, sessionId)) return;
  subject.expiries.set(sessionId, Math.max(expiresAtMs, subject.expiries.get(sessionId) ?? expiresAtMs));
}

function isRemoved(subject: Subject, sessionId: string): boolean {
  const untilMs = subject.removed.get(sessionId);
  return untilMs !== undefined && untilMs > performance.now();
}

function remove(subject: Subject, sessionIds: readonly string[]): void {
  const now = performance.now();
  for (const [id, untilMs] of subject.removed) {
    if (untilMs > now) break;
    subject.removed.delete(id);
  }
  for (const id of sessionIds) {
    subject.expiries.delete(id);
    subject.removed.delete(id);
    subject.removed.set(id, now + REMOVED_FOR_MS);
  }
}
