import type { Variables } from '../start/process.ts';
import { type Manifest, manifests } from './files.ts';

type Named = { name: string };

interface Probe {
  httpGet: { path: string; port: string };
  periodSeconds: number;
  failureThreshold: number;
}

export interface Container {
  name: string;
  image: string;
  args?: string[];
  env?: { name: string; value: string }[];
  envFrom: { configMapRef?: Named; secretRef?: Named & { optional?: boolean } }[];
  ports?: { name: string; containerPort: number }[];
  startupProbe?: Probe;
  readinessProbe?: Probe;
  livenessProbe?: Probe;
  lifecycle?: { preStop: { sleep: { seconds: number } } };
  securityContext: object;
  resources: { requests: Variables; limits: Variables };
  volumeMounts: { name: string; mountPath: string }[];
}

interface PodSpec {
  securityContext: object;
  automountServiceAccountToken: boolean;
  serviceAccountName: string;
  terminationGracePeriodSeconds?: number;
  containers: [Container];
  volumes: { name: string; emptyDir: { sizeLimit: string } }[];
}

/** An object that makes pods, with the one container that its pods have. */
export interface Workload {
  name: string;
  selector: Variables | undefined;
  labels: Variables;
  pod: PodSpec;
  container: Container;
}

/** Every Deployment and Job. */
export function workloads(): Workload[] {
  return manifests()
    .map(({ object }) => object)
    .filter(({ kind }) => kind === 'Deployment' || kind === 'Job')
    .map(({ metadata: { name }, spec }) => {
      const { selector, template } = spec as {
        selector?: { matchLabels: Variables };
        template: { metadata: { labels: Variables }; spec: PodSpec };
      };
      const { labels } = template.metadata;
      return {
        name,
        selector: selector?.matchLabels,
        labels,
        pod: template.spec,
        container: template.spec.containers[0],
      };
    });
}

/** The only object of a kind and name. */
export function objectOf(kind: string, name: string): Manifest {
  const found = manifests().filter(({ object }) => object.kind === kind && object.metadata.name === name);
  if (found.length !== 1 || found[0] === undefined) throw new Error(`${found.length} objects ${kind} ${name}`);
  return found[0].object;
}

/** What a container's environment is: its ConfigMap, the values of its Secrets, by their names, and its own variables. */
export function environmentOf(
  { env = [], envFrom }: Container,
  secrets: Readonly<Record<string, Variables>>,
): Variables {
  const from = envFrom.map(({ configMapRef, secretRef }) =>
    configMapRef ? objectOf('ConfigMap', configMapRef.name).data : secrets[secretRef?.name ?? ''],
  );
  return Object.assign({}, ...from, Object.fromEntries(env.map(({ name, value }) => [name, value])));
}

export function matches(labels: Variables, selector: Variables): boolean {
  return Object.entries(selector).every(([name, value]) => labels[name] === value);
}
