/** The bodies of refusals, byte for byte (specification section 2.3). */
export function envelope(message: string): string {
  return `{"code":-1,"domain":0,"message":"${message}"}`;
}

/** That of a body over its limit, which it names. */
export function tooLong(maxBytes: number): string {
  const [open] = envelope('payload_too_large').split('}');
  return `${open},"errors":[{"path":"","message":"must be at most ${maxBytes} bytes"}]}`;
}
