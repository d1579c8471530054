import type { Variables } from '../start/process.ts';

/** What of a service of compose.yaml the tests look at. */
export interface ComposeService {
  image: string;
  build?: string;
  command?: string[];
  user?: string;
  environment?: Record<string, string | number>;
  read_only?: boolean;
  tmpfs?: string[];
  cap_drop?: string[];
  security_opt?: string[];
  stop_grace_period?: string;
  ports?: string[];
  networks?: string[];
  volumes?: string[];
  configs?: { source: string; target: string }[];
  depends_on?: Record<string, { condition: 'service_healthy' | 'service_completed_successfully' }>;
  healthcheck?: { test?: string[]; interval?: string; disable?: boolean };
}

export interface ComposeFile {
  services: Record<string, ComposeService>;
  networks: Record<string, unknown>;
  volumes: Record<string, unknown>;
  configs: Record<string, { file?: string }>;
}

/** What a value says once the variables in it have theirs (the Compose specification, "Interpolation"), and what is missing. */
export function interpolated(value: string, given: Variables): { value: string; missing: string[] } {
  const missing: string[] = [];
  const filled = value.replaceAll(
    /\$\$|\$\{(?<name>\w+)(?<sign>:[-?])(?<rest>[^}]*)\}/g,
    (match: string, name: string, sign: string, rest: string) => {
      if (match === '$$') return '$';
      if (given[name]) return given[name];
      if (sign === ':-') return rest;
      missing.push(name);
      return '';
    },
  );
  return { value: filled, missing };
}

/** The environment that a container of the service gets. */
export function environmentOf({ environment = {} }: ComposeService, given: Variables): Variables {
  const entries = Object.entries(environment);
  return Object.fromEntries(entries.map(([name, value]) => [name, interpolated(String(value), given).value]));
}
