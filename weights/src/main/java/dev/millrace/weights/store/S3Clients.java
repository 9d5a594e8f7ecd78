package dev.millrace.weights.store;

import software.amazon.awssdk.core.checksums.RequestChecksumCalculation;
import software.amazon.awssdk.core.checksums.ResponseChecksumValidation;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.services.s3.S3Client;

/** Clients as the surroundings say; see {@link S3ObjectStore}. */
final class S3Clients {
    private S3Clients() {}

    static S3Client make() {
        return S3Client.builder()
                .httpClientBuilder(UrlConnectionHttpClient.builder())
                // what is not Amazon's own has no host name of its own for each bucket, and does not know every
                // checksum
                .forcePathStyle(hasOwnEndpoint())
                .requestChecksumCalculation(RequestChecksumCalculation.WHEN_REQUIRED)
                .responseChecksumValidation(ResponseChecksumValidation.WHEN_REQUIRED)
                .build();
    }

    private static boolean hasOwnEndpoint() {
        return System.getenv("AWS_ENDPOINT_URL_S3") != null
                || System.getenv("AWS_ENDPOINT_URL") != null
                || System.getProperty("aws.endpointUrlS3") != null
                || System.getProperty("aws.endpointUrl") != null;
    }
}
