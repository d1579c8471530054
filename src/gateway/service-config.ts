import { z } from 'zod';

const LOCAL = 'local';

/** An http or https URL without user, query and fragment. */
export const PLAIN_URL = /^https?:\/\/[^\s?#@]+$/;

const url = z
  .string()
  .regex(PLAIN_URL, {
    error: 'must be local, or an http or https URL without user and query',
    abort: true,
  })
  .refine((text) => URL.canParse(text), 'must be a URL');
const remotePlace = url
  .transform((text) => text.replace(/\/+$/, ''))
  .meta({ description: 'Its URL; a path in it stands before the path of every request.' });

const localSchema = z.strictObject({
  at: z.literal(LOCAL).meta({ description: 'In this process.' }),
  guards: z.enum(['here', 'front']).default('here').meta({
    description: 'front: a gateway in front, which TRUST_PROXY names, has run the client guards already.',
  }),
});

const remoteSchema = z.strictObject({
  at: remotePlace,
  guards: z.enum(['here', 'upstream']).default('here').meta({
    description: 'Who runs the client guards: this gateway, or the Portcullis at the URL itself.',
  }),
  timeout_ms: z.int().min(1).optional().meta({
    description: 'How long its endpoints may take to begin an answer, where an endpoint says nothing else.',
  }),
  idle_timeout_ms: z.int().min(1).default(120_000).meta({
    description: 'How long an answer that has begun may stand still, for the service or for its reader.',
  }),
  max_body_bytes: z.int().min(0).optional().meta({
    description: 'The largest request body of its endpoints, where an endpoint says nothing else; 0: no limit.',
  }),
  connections: z.int().min(1).max(10_000).default(128).meta({
    description: 'Requests in progress at once, event streams included; no more connections are opened.',
  }),
  queue: z.int().min(0).max(100_000).default(256).meta({
    description: 'Requests that may wait for their turn; more are answered 503.',
  }),
  websockets: z.int().min(0).max(100_000).default(1_000).meta({ description: 'WebSockets open at once.' }),
  breaker: z
    .strictObject({
      failures: z.int().min(1).default(5).meta({ description: 'Failures in a row that open the circuit.' }),
      open_ms: z
        .int()
        .min(1)
        .default(10_000)
        .meta({ description: 'How long nothing is sent, before one request tries.' }),
    })
    .default({ failures: 5, open_ms: 10_000 })
    .meta({ description: 'When requests are answered 503 at once.' }),
});

/** A service of `gateway.yaml`: `local`, a URL, or either with its settings. */
export const serviceSchema = z
  .union([z.literal(LOCAL), url, localSchema, remoteSchema])
  .transform((given): ServiceConfig => {
    if (given === LOCAL) return localSchema.parse({ at: LOCAL });
    return typeof given === 'string' ? remoteSchema.parse({ at: given }) : given;
  });

export type LocalService = Readonly<z.output<typeof localSchema>>;
export type RemoteService = Readonly<z.output<typeof remoteSchema>>;
export type ServiceConfig = LocalService | RemoteService;

/** Whether a service answers in another process. */
export function isRemote(service: ServiceConfig | undefined): service is RemoteService {
  return service !== undefined && service.at !== LOCAL;
}

/** A remote service with nothing but its URL. */
export function remoteService(at: string): RemoteService {
  return remoteSchema.parse({ at });
}
