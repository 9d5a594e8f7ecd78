package dev.millrace.gateway;

import java.net.InetAddress;
import java.net.UnknownHostException;

/**
 * How callers reach the HTTP listeners of a process: metrics with schemas, and the page. The gateway serves other callers and has its own
 * address and token.
 *
 * @param host listen address of metrics, schemas and page; other than loopback needs a token
 * @param tokenVariable environment variable with the bearer token of metrics, schemas and page; empty for none, on loopback only
 * @param tls of all listeners, the gateway's too
 */
public record HttpConfig(String host, String tokenVariable, HttpTls tls) {
    public HttpConfig {
        requireTokenOffLoopback(host, tokenVariable);
    }

    public static HttpConfig defaults() {
        return new HttpConfig("127.0.0.1", "", HttpTls.none());
    }

    /** @throws IllegalArgumentException off loopback without a token */
    static void requireTokenOffLoopback(String host, String tokenVariable) {
        if (!isLoopback(host) && tokenVariable.isEmpty()) {
            throw new IllegalArgumentException(
                    "host must be on loopback, such as 127.0.0.1, where token_variable is empty: '" + host
                            + "'; name a variable of the environment that holds a token, or listen on loopback");
        }
    }

    static boolean isLoopback(String host) {
        try {
            return InetAddress.getByName(host).isLoopbackAddress();
        } catch (UnknownHostException e) {
            throw new IllegalArgumentException("host must be an address of this machine: '" + host + "'", e);
        }
    }
}
