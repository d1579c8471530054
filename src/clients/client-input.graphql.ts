import type { Builder } from '../graphql/builder.ts';
import type { ClientEnums } from './client-type.graphql.ts';

/** The input of a client, with the members of REST in camelCase. */
export function clientInputType(builder: Builder, { grantType }: ClientEnums) {
  const tokenExpiry = builder.inputType('TokenExpiryInput', {
    description: 'How long the tokens of a client live.',
    fields: (t) => ({
      enabled: t.boolean({ required: true, description: 'Whether they end at all.' }),
      duration: t.int({
        required: true,
        description: 'Seconds from the issue of a token to its end, at least 1; counts where `enabled`.',
      }),
    }),
  });
  const rateLimit = builder.inputType('RateLimitInput', {
    description: 'How many requests a client may make, in windows aligned to the clock; absent: any number.',
    fields: (t) => ({
      requestsPerSecond: t.int({ description: 'Requests in a second, at least 1.' }),
      requestsPerMinute: t.int({ description: 'Requests in a minute, at least 1.' }),
      requestsPerHour: t.int({ description: 'Requests in an hour, at least 1.' }),
    }),
  });
  return builder.inputType('ClientInput', {
    description: 'A client; what is absent takes its default.',
    fields: (t) => ({
      name: t.string({ required: true, description: 'As people call it: 1 to 255 characters.' }),
      grantTypes: t.field({
        type: [grantType],
        required: true,
        description: 'How it may get tokens: at least one way.',
      }),
      scopes: t.stringList({
        required: true,
        description: 'What its own tokens allow: permissions such as `accounts:read`, which the caller must have.',
      }),
      tokenExpiry: t.field({
        type: tokenExpiry,
        description: 'How long its own tokens live: 3600 seconds by default.',
      }),
      allowedIps: t.stringList({
        description: 'The addresses and networks (CIDR) that it may call from; absent or empty: any.',
      }),
      requireCertificate: t.boolean({ description: 'Whether it must show a certificate; false by default.' }),
      certFingerprint: t.string({
        description: 'The fingerprint of its certificate: hexadecimal, with or without colons.',
      }),
      rateLimit: t.field({ type: rateLimit, description: 'How many requests it may make; absent: any number.' }),
      monthlyLimit: t.int({
        description: 'How many requests it may make in a calendar month (UTC), at least 1; absent: any number.',
      }),
      refreshReuseDetection: t.boolean({
        description: 'Whether a refresh token is spent by its first use; false by default.',
      }),
    }),
  });
}
