import { createServer } from 'node:http';
import { vi } from 'vitest';
import { listening } from '../gateway/forwarder.ts';

/** A span as the collector was told of it. */
export interface CollectedSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  name: string;
  /** 1 internal, 2 server, 3 client, 4 producer, 5 consumer (OTLP). */
  kind: number;
  attributes: Record<string, unknown>;
  /** The service that has sent it. */
  service: string;
}

/** How it treats what comes: takes it, refuses it, never answers, or cuts the connection. */
type Mood = 'taking' | 'refusing' | 'silent' | 'cutting';

/** A collector of traces (OTLP over HTTP, in JSON). */
export interface Collector extends AsyncDisposable {
  url: string;
  spans: CollectedSpan[];
  requests: number;
  mood: Mood;
  /** The spans of a trace, once one of them has this name. */
  traceWith(traceId: string, name: string): Promise<CollectedSpan[]>;
}

interface OtlpSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  attributes: OtlpAttribute[];
}

interface OtlpAttribute {
  key: string;
  value: Record<string, unknown>;
}

interface OtlpBatch {
  resourceSpans: { resource: { attributes: OtlpAttribute[] }; scopeSpans: { spans: OtlpSpan[] }[] }[];
}

/** Starts a collector on a free port. */
export async function startCollector(): Promise<Collector> {
  const server = createServer(async (req, res) => {
    collector.requests += 1;
    const chunks: Buffer[] = [];
    req.on('error', () => undefined);
    if (collector.mood === 'cutting') return void req.socket.destroy();
    if (collector.mood === 'refusing') return void res.writeHead(400).end();
    if (collector.mood === 'silent') return void req.resume();
    for await (const chunk of req) chunks.push(chunk);
    collector.spans.push(...spansOf(JSON.parse(Buffer.concat(chunks).toString())));
    res.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  const collector: Collector = {
    url: '',
    spans: [],
    requests: 0,
    mood: 'taking',
    async traceWith(traceId, name) {
      const of = () => collector.spans.filter((span) => span.traceId === traceId);
      return vi.waitFor(
        () => {
          const found = of();
          if (!found.some((span) => span.name === name)) throw new Error(`no ${name} in ${found.map((s) => s.name)}`);
          return found;
        },
        { interval: 50 },
      );
    },
    [Symbol.asyncDispose]: async () => void server.close().closeAllConnections(),
  };
  collector.url = await listening(server);
  return collector;
}

function spansOf({ resourceSpans }: OtlpBatch): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = String(valuesOf(resource.attributes)['service.name']);
    return scopeSpans.flatMap(({ spans }) =>
      spans.map(({ traceId, spanId, parentSpanId, name, kind, attributes }) => ({
        traceId,
        spanId,
        parentSpanId,
        name,
        kind,
        attributes: valuesOf(attributes),
        service,
      })),
    );
  });
}

function valuesOf(attributes: readonly OtlpAttribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
