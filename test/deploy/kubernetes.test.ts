import { describe, expect, it } from 'vitest';
import { STOP_DEADLINE_MS } from '../../src/app/run.ts';
import { envSchema, REQUIRED_IN_PRODUCTION, SECRET_VARIABLES } from '../../src/platform/config/config.ts';
import {
  faultsOf,
  KUBERNETES,
  type Manifest,
  manifest,
  manifests,
  newSecrets,
  read,
  readYaml,
} from '../support/deploy/files.ts';
import { checkKind } from '../support/deploy/kubernetes-kinds.ts';
import { environmentOf, matches, objectOf, workloads } from '../support/deploy/pods.ts';
import type { Variables } from '../support/start/process.ts';

interface Kustomization {
  namespace: string;
  resources: string[];
  images: { name: string; newTag: string }[];
}

const APART = new Set(['secret.example.yaml', 'service-monitor.yaml']);

const all = manifests();
const pods = workloads();
const deployments = pods.filter(({ selector }) => selector !== undefined);
const kustomization = readYaml<Kustomization>(`${KUBERNETES}/kustomization.yaml`);
const secretNames = Object.keys(objectOf('Secret', 'portcullis').stringData ?? {});

/** A Secret as deploy/kubernetes/README.md makes it. */
function secret(): Variables {
  const { POSTGRES_PASSWORD, POSTGRES_SERVICE_PASSWORD, REDIS_PASSWORD, ...values } = newSecrets();
  return {
    ...values,
    DATABASE_URL: `postgres://portcullis:${POSTGRES_SERVICE_PASSWORD}@postgres.data:5432/portcullis`,
    REDIS_URL: `redis://:${REDIS_PASSWORD}@redis.data:6379`,
  };
}

const OWNER = { MIGRATE_DATABASE_URL: 'postgres://portcullis_owner:hidden@postgres.data:5432/portcullis' };
const secrets = () => ({ portcullis: secret(), 'portcullis-migrate': OWNER });

function specOf<Spec>({ spec }: Manifest): Spec {
  return spec as Spec;
}

/** Those whose schema is part of Kubernetes: HTTPRoute and ServiceMonitor are extensions. */
const known = all.filter(({ object: { kind } }) => kind !== 'HTTPRoute' && kind !== 'ServiceMonitor');

it.each(known.map(({ object }) => [object.kind, object.metadata.name, object]))(
  '%s %s is valid against the schema of its kind',
  (_, __, object) => {
    checkKind(object);
  },
);

it.each([
  [{ selector: undefined }, /must have required property/],
  [{ replicas: 'two' }, /must be integer/],
  [{ replica: 2 }, /unknown fields: \/spec\/replica$/],
])('a change that violates the schema is reported: %j', (change, message) => {
  const deployment = objectOf('Deployment', 'portcullis-worker');
  const changed = { ...deployment, spec: { ...specOf<object>(deployment), ...change } };
  expect(() => checkKind(changed)).toThrow(message);
});

it('kustomization.yaml has every file except the example Secret and optional ones, in one namespace', () => {
  expect(new Set(kustomization.resources)).toEqual(
    new Set(all.map(({ file }) => file).filter((file) => !APART.has(file))),
  );
  for (const { object } of all.filter(({ object: { kind } }) => kind !== 'Namespace')) {
    expect(object.metadata.namespace, object.metadata.name).toBe(kustomization.namespace);
  }
  expect(objectOf('Namespace', kustomization.namespace).metadata.labels).toEqual({
    'pod-security.kubernetes.io/enforce': 'restricted',
  });
});

it('the image is the release version', () => {
  expect(kustomization.images).toEqual([{ name: 'portcullis', newTag: manifest.version }]);
  expect(pods.map(({ container }) => container.image)).toEqual(pods.map(() => 'portcullis'));
});

describe('configuration', () => {
  it.each(pods.map(({ name, container }) => [name, container] as const))(
    'D1-04: %s sets every variable that production requires, and no unknown one',
    async (_, container) => {
      const environment = environmentOf(container, secrets());
      expect(Object.keys(environment).filter((name) => !(name in envSchema.shape))).toEqual([]);
      expect(await faultsOf(environment)).toEqual([]);
    },
  );

  it('D1-04: the values of the example Secret are rejected, each by name', async () => {
    const [first] = pods;
    if (first === undefined) throw new Error('no pods');
    const example = objectOf('Secret', 'portcullis').stringData ?? {};
    expect(await faultsOf(environmentOf(first.container, { portcullis: example }))).toEqual(
      REQUIRED_IN_PRODUCTION.filter((name) => name in example).map(
        (name) => `${name} is missing: production requires it`,
      ),
    );
  });

  it('the Secret has every required secret and the audit key, and the ConfigMap has none', () => {
    const required = [...REQUIRED_IN_PRODUCTION, 'AUDIT_SIGNING_KEY'].filter((name) => SECRET_VARIABLES.has(name));
    expect([...secretNames].sort()).toEqual([...required].sort());
    expect(Object.keys(secret()).sort()).toEqual([...required].sort());
    expect(
      Object.keys(objectOf('ConfigMap', 'portcullis').data ?? {}).filter((name) => SECRET_VARIABLES.has(name)),
    ).toEqual([]);
    expect(read('.gitignore').split('\n')).toContain('secret.env');
  });

  it('only the migration Job has the URL of the table owner, and it is optional', () => {
    const owning = pods.filter(({ container }) => 'MIGRATE_DATABASE_URL' in environmentOf(container, secrets()));
    expect(owning.map(({ name }) => name)).toEqual(['portcullis-migrate']);
    expect(Object.keys(objectOf('Secret', 'portcullis-migrate').stringData ?? {})).toEqual(Object.keys(OWNER));
    const optional = pods.flatMap(({ container }) =>
      container.envFrom.flatMap(({ secretRef }) => (secretRef?.optional ? secretRef.name : [])),
    );
    expect(optional).toEqual(['portcullis-migrate']);
  });

  it('the roles are gateway and worker', () => {
    expect(deployments.map(({ container: { env } }) => env)).toEqual(
      ['gateway', 'worker'].map((value) => [{ name: 'PORTCULLIS_ROLE', value }]),
    );
  });
});

describe.each(pods.map((workload) => [workload.name, workload] as const))('%s', (_, { pod, container }) => {
  it('has no privileges, and two writable folders of limited size', () => {
    expect(pod).toMatchObject({
      serviceAccountName: objectOf('ServiceAccount', 'portcullis').metadata.name,
      automountServiceAccountToken: false,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 1000,
        fsGroup: 1000,
        seccompProfile: { type: 'RuntimeDefault' },
      },
    });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    expect(container.volumeMounts.map(({ mountPath }) => mountPath)).toEqual(['/data', '/tmp']);
    expect(container.volumeMounts.map(({ name }) => name)).toEqual(pod.volumes.map(({ name }) => name));
    for (const { emptyDir } of pod.volumes) expect(emptyDir.sizeLimit).toMatch(/^\d+[GM]i$/);
    expect(Object.keys(container.resources.requests)).toEqual(['cpu', 'memory']);
    expect(container.resources.limits.memory).toBeDefined();
  });
});

describe.each(deployments.map((workload) => [workload.name, workload] as const))('%s', (name, workload) => {
  const { container, pod, labels, selector } = workload;
  const ports = Object.fromEntries((container.ports ?? []).map((port) => [port.name, port.containerPort]));

  it('listens on the configured ports, and is probed on the private port', () => {
    const admin = envSchema.shape.ADMIN_PORT.parse(undefined);
    const isGateway = name === 'portcullis-gateway';
    expect(ports).toEqual({ ...(isGateway ? { http: envSchema.shape.PORT.parse(undefined) } : {}), admin });
    const { startupProbe, readinessProbe, livenessProbe } = container;
    expect(startupProbe?.httpGet).toEqual({ path: '/readyz', port: 'admin' });
    expect(readinessProbe?.httpGet).toEqual({ path: '/readyz?exclude=stores', port: 'admin' });
    expect(livenessProbe?.httpGet).toEqual({ path: '/livez', port: 'admin' });
  });

  it('a rollout stops at the first new pod that cannot reach its stores, which has two minutes before a restart', () => {
    expect(specOf<{ strategy: object }>(objectOf('Deployment', name)).strategy).toEqual({
      rollingUpdate: { maxUnavailable: 0, maxSurge: 1 },
    });
    const { periodSeconds = 0, failureThreshold = 0 } = container.startupProbe ?? {};
    expect(periodSeconds * failureThreshold).toBe(120);
  });

  it('D1-13: has enough time to stop', () => {
    const waits = container.lifecycle?.preStop.sleep.seconds ?? 0;
    expect((pod.terminationGracePeriodSeconds ?? 0) - waits).toBeGreaterThan(STOP_DEADLINE_MS / 1_000);
  });

  it('selects its own pods and no others', () => {
    const selected = pods.filter((other) => matches(other.labels, selector ?? {}));
    expect(selected.map((other) => other.name)).toEqual([name]);
    expect(labels).toEqual(selector);
  });

  it('has a disruption budget of one pod', () => {
    const budget = specOf<{ maxUnavailable: number; selector: { matchLabels: Variables } }>(
      objectOf('PodDisruptionBudget', name),
    );
    expect(budget).toEqual({ maxUnavailable: 1, selector: { matchLabels: selector } });
  });
});

describe('references between objects', () => {
  it('Services select pods that have their ports', () => {
    type Spec = { selector: Variables; ports: { targetPort: string }[] };
    const found = all
      .filter(({ object: { kind } }) => kind === 'Service')
      .map(({ object }) => {
        const { selector, ports } = specOf<Spec>(object);
        const serving = deployments.filter(({ labels }) => matches(labels, selector));
        for (const { container } of serving) {
          for (const { targetPort } of ports) expect(container.ports?.map(({ name }) => name)).toContain(targetPort);
        }
        return [object.metadata.name, serving.map(({ name }) => name)];
      });
    expect(Object.fromEntries(found)).toEqual({
      portcullis: ['portcullis-gateway'],
      'portcullis-admin': ['portcullis-gateway', 'portcullis-worker'],
    });
  });

  it('the HTTPRoute routes the host of PUBLIC_URL to the Service, without a timeout, and removes certificate headers', () => {
    const { host } = new URL(objectOf('ConfigMap', 'portcullis').data?.PUBLIC_URL ?? '');
    const { ports } = specOf<{ ports: { port: number }[] }>(objectOf('Service', 'portcullis'));
    expect(specOf(objectOf('HTTPRoute', 'portcullis'))).toEqual({
      parentRefs: [{ name: 'public', namespace: 'gateways', sectionName: 'https' }],
      hostnames: [host],
      rules: [
        {
          matches: [{ path: { type: 'PathPrefix', value: '/' } }],
          filters: [{ type: 'RequestHeaderModifier', requestHeaderModifier: { remove: ['ssl-client-fingerprint'] } }],
          timeouts: { request: '0s', backendRequest: '0s' },
          backendRefs: [{ name: 'portcullis', port: ports[0]?.port }],
        },
      ],
    });
  });

  it('the autoscaler scales the gateway, and never below two', () => {
    type Spec = { scaleTargetRef: { kind: string; name: string }; minReplicas: number };
    const { scaleTargetRef, minReplicas } = specOf<Spec>(objectOf('HorizontalPodAutoscaler', 'portcullis-gateway'));
    expect(objectOf(scaleTargetRef.kind, scaleTargetRef.name)).toBeDefined();
    expect(minReplicas).toBeGreaterThanOrEqual(2);
    expect(specOf<{ replicas: number }>(objectOf('Deployment', 'portcullis-worker')).replicas).toBeGreaterThanOrEqual(
      2,
    );
    expect(specOf<{ replicas?: number }>(objectOf('Deployment', 'portcullis-gateway')).replicas).toBeUndefined();
  });

  it('D1-03: the network policies select every pod, and only Prometheus may reach the private port', () => {
    type Spec = { podSelector: { matchLabels: Variables }; ingress?: { from: object[]; ports: { port: string }[] }[] };
    const specs = all
      .filter(({ object: { kind } }) => kind === 'NetworkPolicy')
      .map(({ object }) => specOf<Spec>(object));
    const opened = specs.flatMap(({ podSelector, ingress = [] }) =>
      ingress.flatMap(({ from, ports }) => ports.map(({ port }) => ({ port, from, to: podSelector.matchLabels }))),
    );
    const namespace = (name: string) => [
      { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } } },
    ];
    expect(opened).toMatchObject([
      { port: 'admin', from: namespace('monitoring') },
      { port: 'http', from: namespace('gateways') },
    ]);
    for (const { labels } of pods) expect(matches(labels, opened[0]?.to ?? {})).toBe(true);
  });

  it('the ServiceMonitor sets the job label that the alerts use, and keeps the labels of the product', () => {
    type Spec = { jobLabel?: string; endpoints: { honorLabels?: boolean }[] };
    const { jobLabel = '', endpoints } = specOf<Spec>(objectOf('ServiceMonitor', 'portcullis'));
    const { labels = {} } = objectOf('Service', 'portcullis-admin').metadata;
    const [, job] = /\bup\{job="(\w+)"\}/.exec(read('deploy/prometheus/alerts.yaml')) ?? [];
    expect(job).toBeDefined();
    expect(labels[jobLabel]).toBe(job);
    // The operator puts `service` on every target, which the metrics of remote services have, too.
    expect(endpoints).toMatchObject([{ honorLabels: true }]);
  });

  it('the ServiceMonitor selects the Service of the private port', () => {
    type Spec = { selector: { matchLabels: Variables }; endpoints: { port: string; path: string }[] };
    const { selector, endpoints } = specOf<Spec>(objectOf('ServiceMonitor', 'portcullis'));
    expect(matches(objectOf('Service', 'portcullis-admin').metadata.labels ?? {}, selector.matchLabels)).toBe(true);
    expect(matches(objectOf('Service', 'portcullis').metadata.labels ?? {}, selector.matchLabels)).toBe(false);
    expect(endpoints).toMatchObject([{ port: 'admin', path: '/metrics' }]);
  });
});
