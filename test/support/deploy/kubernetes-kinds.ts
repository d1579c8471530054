import { Deployment } from 'kubernetes-models/apps/v1';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2';
import { Job } from 'kubernetes-models/batch/v1';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { ConfigMap, Namespace, Secret, Service, ServiceAccount } from 'kubernetes-models/v1';
import type { Manifest } from './files.ts';

type Check = (object: never) => { validate(): void };

const KINDS: Readonly<Record<string, Check>> = {
  'apps/v1 Deployment': (object) => new Deployment(object),
  'autoscaling/v2 HorizontalPodAutoscaler': (object) => new HorizontalPodAutoscaler(object),
  'batch/v1 Job': (object) => new Job(object),
  'networking.k8s.io/v1 NetworkPolicy': (object) => new NetworkPolicy(object),
  'policy/v1 PodDisruptionBudget': (object) => new PodDisruptionBudget(object),
  'v1 ConfigMap': (object) => new ConfigMap(object),
  'v1 Namespace': (object) => new Namespace(object),
  'v1 Secret': (object) => new Secret(object),
  'v1 Service': (object) => new Service(object),
  'v1 ServiceAccount': (object) => new ServiceAccount(object),
};

/**
 * Holds an object against the schema that Kubernetes publishes for its kind.
 * @throws Error for a kind without one here, for what does not fit, and for fields that the schema does not have.
 */
export function checkKind(object: Manifest): void {
  const check = KINDS[`${object.apiVersion} ${object.kind}`];
  if (check === undefined) throw new Error(`no schema of ${object.apiVersion} ${object.kind}`);
  const unread = new Set<string>();
  check(object as never).validate.call(watched(object, '', unread));
  if (unread.size > 0) throw new Error(`unknown fields: ${[...unread].join(', ')}`);
}

/** The same value, which notes what nobody reads: the schemas let unknown fields pass, and so never look at them. */
function watched(value: unknown, path: string, unread: Set<string>): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => {
    unread.add(`${path}/${name}`);
    return [name, watched(member, `${path}/${name}`, unread)] as const;
  });
  const copy = Array.isArray(value) ? members.map(([, member]) => member) : Object.fromEntries(members);
  return new Proxy(copy, {
    get(target, name, receiver) {
      unread.delete(`${path}/${String(name)}`);
      return Reflect.get(target, name, receiver);
    },
  });
}
