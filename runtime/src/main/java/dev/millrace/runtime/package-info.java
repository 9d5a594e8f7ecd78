/**
 * A whole run in one process: configuration, roles, metrics and results.
 *
 * <p>{@link dev.millrace.runtime.Millrace} trains from a program, without the command line:
 *
 * <pre>{@code
 * MillraceConfig config = new ConfigLayers()
 *         .yaml("task: {kind: sort, digits: 2}", "the example")
 *         .set("learner.max_steps=3")
 *         .resolve();
 * RunResult result = new Millrace(config).in(folder).run();
 * double reward = result.summary().steps().get(2).reward();
 * }</pre>
 *
 * <p>That starts a Kafka broker in this process, with its data in the folder. With {@code run.bootstrap_servers} the run's topics are on
 * a cluster, where other processes audit, replay or join it by its name.
 */
@NullMarked
package dev.millrace.runtime;

import org.jspecify.annotations.NullMarked;
