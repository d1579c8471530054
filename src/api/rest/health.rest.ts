import { type Health, VERSION } from '../../platform/health.ts';
import { headersOf, json } from '../openapi/operation.ts';
import { route } from './route.ts';

const checks = { database: 'ok', cache: 'ok', bus: 'ok', audit: 'ok' };
const example = { status: 'ok', version: VERSION, uptime: 3600, checks };

/**
 * Declares the routes that report the health of this process at a path: 503 if the database is down or the audit spool
 * is full, otherwise 200. `name` becomes part of the operation ids.
 */
function healthRoutesOf(path: string, name: string) {
  return (['GET', 'HEAD'] as const).map((method) =>
    route({
      method,
      path,
      servesWhenAuditIsFull: true,
      operation: {
        operationId: `${method.toLowerCase()}${name}`,
        tag: 'Health',
        summary: 'Get the health of the process',
        responses: {
          200: json('Requests are served; `degraded` if the cache or the bus is down.', 'Health', example, headersOf()),
          503: json(
            'The database is down, or the audit spool is full: other requests are refused.',
            'Health',
            { ...example, status: 'down', checks: { ...checks, database: 'down' } },
            headersOf(),
          ),
        },
      },
      handlers: ({ health }: { health: Health }) => [
        (_req, res) => {
          const report = health.report();
          res.status(report.status === 'down' ? 503 : 200).json(report);
        },
      ],
    }),
  );
}

/** The routes for the health of this process, which are served at three paths. */
export const healthRoutes = [
  ...healthRoutesOf('/health', 'Health'),
  ...healthRoutesOf('/v1/health', 'HealthV1'),
  ...healthRoutesOf('/v2/health', 'HealthV2'),
];
