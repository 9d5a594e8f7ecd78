package dev.millrace.learner;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.Producer;

/**
 * A real producer that dies at one of its calls, as its process would: the call is not made, or made and not answered,
 * and nothing is sent, aborted or closed in good order afterwards.
 *
 * <p>Calls that change nothing on the broker are not counted, and of the many chunks of a version only every thirteenth.
 */
final class KilledProducer implements VersionCommitter.Producers {
    /** Tensors of the synthetic decoder, and two moments of each: one chunk each. */
    private static final int CHUNKS = 3 * SyntheticRollouts.SHAPE.tensors().size();

    private final int call;
    private final boolean answeredNoMore;
    private final List<String> calls = new ArrayList<>();
    private int sends;

    /** Simulates a killed process. An error, so that the learner does not handle it as a broker's answer. */
    static final class Killed extends Error {
        private static final long serialVersionUID = 1L;

        Killed(String call) {
            super("killed at " + call, null, false, false);
        }
    }

    /**
     * @param call           which call is the last, from 0
     * @param answeredNoMore whether the broker still gets it
     */
    KilledProducer(int call, boolean answeredNoMore) {
        this.call = call;
        this.answeredNoMore = answeredNoMore;
    }

    /** Names of the calls made, the last one being the one that killed it. */
    List<String> calls() {
        return calls;
    }

    @Override
    @SuppressWarnings("unchecked")
    public Producer<byte[], byte[]> create(Map<String, Object> properties) {
        Producer<byte[], byte[]> real = VersionCommitter.Producers.kafka().create(properties);
        return (Producer<byte[], byte[]>) Proxy.newProxyInstance(
                getClass().getClassLoader(), new Class<?>[] {Producer.class}, (proxy, method, arguments) -> {
                    if (method.getName().equals("close")) {
                        real.close(Duration.ZERO);
                        return null;
                    }
                    if (calls.size() > call) {
                        throw new Killed(method.getName());
                    }
                    boolean last = false;
                    if (counts(method.getName())) {
                        last = calls.size() == call;
                        calls.add(method.getName());
                    }
                    if (last && !answeredNoMore) {
                        throw new Killed(method.getName());
                    }
                    try {
                        Object result = method.invoke(real, arguments);
                        if (last) {
                            throw new Killed(method.getName());
                        }
                        return result;
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                });
    }

    private boolean counts(String method) {
        return switch (method) {
            case "beginTransaction" -> {
                sends = 0;
                yield true;
            }
            case "send" -> {
                int index = sends++;
                yield index >= CHUNKS || index % 13 == 0;
            }
            case "partitionsFor" -> false;
            default -> true;
        };
    }
}
