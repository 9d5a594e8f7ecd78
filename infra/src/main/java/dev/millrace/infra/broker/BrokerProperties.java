package dev.millrace.infra.broker;

import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;

/** Kafka's own settings for a broker that is small and serves one run. */
final class BrokerProperties {
    static final String CLIENT_LISTENER = "PLAINTEXT";
    static final String CONTROLLER_LISTENER = "CONTROLLER";
    private static final int ALONE_SESSION_MS = 3_600_000;

    private BrokerProperties() {}

    /** @param over settings by Kafka's own names that go over those made here */
    static Properties of(Path directory, BrokerConfig config, int port, Membership member, Map<String, String> over) {
        String listeners = listeners(port, member);
        Properties p = new Properties();
        p.setProperty("process.roles", "broker,controller");
        p.setProperty("node.id", Integer.toString(member.nodeId()));
        p.setProperty("controller.listener.names", CONTROLLER_LISTENER);
        p.setProperty("inter.broker.listener.name", CLIENT_LISTENER);
        p.setProperty("listeners", listeners);
        p.setProperty("advertised.listeners", listeners);
        p.setProperty("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT");
        p.setProperty("controller.quorum.bootstrap.servers", member.controllers());
        p.setProperty("log.dirs", directory.toString());
        p.setProperty("auto.create.topics.enable", "false");
        if (config.durability() == Durability.ALL) {
            p.setProperty("log.flush.interval.messages", "1");
        }
        p.setProperty("message.max.bytes", Integer.toString(config.maxRecordBytes()));
        p.setProperty("replica.fetch.max.bytes", Integer.toString(config.maxRecordBytes()));
        String copies = Integer.toString(member.copies());
        String inSync = Integer.toString(member.copiesInSync());
        p.setProperty("default.replication.factor", copies);
        p.setProperty("min.insync.replicas", inSync);
        p.setProperty("offsets.topic.replication.factor", copies);
        p.setProperty("offsets.topic.num.partitions", "4");
        // a run that is resumed after months continues where it stood
        p.setProperty("offsets.retention.minutes", Integer.toString(Integer.MAX_VALUE));
        p.setProperty("transaction.state.log.replication.factor", copies);
        p.setProperty("transaction.state.log.min.isr", inSync);
        p.setProperty("transaction.state.log.num.partitions", "4");
        p.setProperty("share.coordinator.state.topic.replication.factor", copies);
        p.setProperty("share.coordinator.state.topic.min.isr", inSync);
        // nobody else will join: do not wait for others, and notice soon when somebody is gone
        p.setProperty("group.initial.rebalance.delay.ms", "0");
        p.setProperty("group.streams.initial.rebalance.delay.ms", "0");
        p.setProperty("group.min.session.timeout.ms", "3000");
        p.setProperty("group.streams.min.session.timeout.ms", "3000");
        p.setProperty("group.streams.min.heartbeat.interval.ms", "500");
        p.setProperty("transaction.abort.timed.out.transaction.cleanup.interval.ms", "1000");
        if (member.isAlone()) {
            // nobody could take over from it, so a machine that stood still for a while is no reason to take its
            // partitions away
            p.setProperty("broker.session.timeout.ms", Integer.toString(ALONE_SESSION_MS));
        } else { // a broker that is gone is noticed soon too
            p.setProperty("broker.session.timeout.ms", "3000");
            p.setProperty("broker.heartbeat.interval.ms", "500");
        }
        // small: 128 MB of the cleaner and 10 MB per index are for machines that do nothing else
        p.setProperty("log.cleaner.dedupe.buffer.size", Integer.toString(16 << 20));
        p.setProperty("log.index.size.max.bytes", Integer.toString(1 << 20));
        p.setProperty("num.network.threads", "2");
        p.setProperty("num.io.threads", "4");
        p.setProperty("background.threads", "2");
        p.putAll(over);
        return p;
    }

    /** Where clients and controllers find a node, as Kafka writes it. */
    static String listeners(int port, Membership member) {
        return CLIENT_LISTENER + "://127.0.0.1:" + port + "," + CONTROLLER_LISTENER + "://127.0.0.1:"
                + member.controllerPort();
    }
}
