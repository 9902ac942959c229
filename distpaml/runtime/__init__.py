"""The three interfaces of the loop on Ray: the same records, bit for bit, from as many processes as one likes."""
