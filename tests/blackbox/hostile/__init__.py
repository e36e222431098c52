"""Files and folders made to attack whoever reads them."""
