/**
 * A real Kafka broker, in this process or as a child of it, alone or as one of a cluster on this machine.
 *
 * <p>{@link dev.millrace.infra.broker.EmbeddedBroker} is what a run without a cluster of its own and the tests
 * use; {@link dev.millrace.infra.broker.BrokerProcess} is for load and fault tests, where the broker must have a
 * heap of its own or be killed, and {@link dev.millrace.infra.broker.BrokerCluster} is several of these with copies of
 * everything. A single broker keeps everything under one directory and can be started on it again, on
 * another port. They listen on the loopback address only and know no users: they are not for other machines.
 *
 * <p>The classes behind it are internal to Kafka; the pinned Kafka version is part of this package's contract.
 */
@NullMarked
package dev.millrace.infra.broker;

import org.jspecify.annotations.NullMarked;
