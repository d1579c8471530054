export interface KafkaPorts {
  broker: number;
  controller: number;
  /** The port that clients are told: a proxy's, where one stands in between. */
  advertised: number;
  advertisedHost: string;
}

/** `server.properties` of one node that is broker and controller, quick to start, to join groups and to come back. */
export function serverProperties(logDir: string, ports: KafkaPorts): string {
  const values = {
    'process.roles': 'broker,controller',
    'node.id': '1',
    listeners: `PLAINTEXT://127.0.0.1:${ports.broker},CONTROLLER://127.0.0.1:${ports.controller}`,
    'advertised.listeners': `PLAINTEXT://${ports.advertisedHost}:${ports.advertised}`,
    'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'controller.listener.names': 'CONTROLLER',
    'controller.quorum.voters': `1@127.0.0.1:${ports.controller}`,
    'log.dirs': logDir,
    'auto.create.topics.enable': 'false',
    'group.initial.rebalance.delay.ms': '0',
    'group.min.session.timeout.ms': '1000',
    'offsets.topic.replication.factor': '1',
    'offsets.topic.num.partitions': '1',
    'transaction.state.log.replication.factor': '1',
    'transaction.state.log.min.isr': '1',
    'transaction.state.log.num.partitions': '1',
    // Or a broker that was killed takes 13 s to come back.
    'broker.session.timeout.ms': '1000',
    'broker.heartbeat.interval.ms': '200',
    // Or a node that nobody uses writes two records a second, a quarter of what it computes.
    'metadata.max.idle.interval.ms': '0',
  };
  return asProperties(values);
}

/** Warnings, and the line that says that the server has started. */
export function logProperties(): string {
  return asProperties({
    status: 'error',
    'appender.console.type': 'Console',
    'appender.console.name': 'console',
    'appender.console.layout.type': 'PatternLayout',
    'appender.console.layout.pattern': '%d %p %m (%c)%n%throwable',
    'rootLogger.level': 'warn',
    'rootLogger.appenderRef.console.ref': 'console',
    'logger.server.name': 'kafka.server.KafkaRaftServer',
    'logger.server.level': 'info',
  });
}

function asProperties(values: Record<string, string>): string {
  const escaped = Object.entries(values).map(([name, value]) => `${name}=${value.replaceAll('\\', '\\\\')}`);
  return `${escaped.join('\n')}\n`;
}
