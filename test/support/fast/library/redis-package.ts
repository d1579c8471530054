export { ErrorReply, RedisClient, RedisCluster } from 'redis';
